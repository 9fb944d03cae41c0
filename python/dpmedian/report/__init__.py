"""The page of a release, for those who approve, review or receive it."""

from dpmedian.report.page import page, write_page

__all__ = ["page", "write_page"]
