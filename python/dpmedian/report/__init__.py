"""The page about a release, for people who approve, review or receive the release."""

from dpmedian.report.writing import page, write_page

__all__ = ["page", "write_page"]
