"""From a record to its page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmedian.report.groups import page_of_groups
from dpmedian.report.page import page_of_release
from dpmedian.verification.groups import is_of_groups

__all__ = ["page", "write_page"]


def write_page(
    record: Mapping[str, Any], path: str | os.PathLike[str], ledger: Mapping[str, Any] | None = None
) -> Path:
    """Writes the page of a parsed record, with the history of a ledger (its `to_dict()`) if one is given."""
    file = Path(path)
    file.write_text(page(record, ledger), encoding="utf-8")
    return file


def page(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """The HTML of the page, of a single release or of groups."""
    return page_of_groups(record, ledger) if is_of_groups(record) else page_of_release(record, ledger)
