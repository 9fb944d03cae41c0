"""The page of a release, for those who approve, review or receive it."""

from dpmedian.report.writing import page, write_page

__all__ = ["page", "write_page"]
