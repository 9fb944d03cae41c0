"""Functions that write the page of an audit record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmedian.recorded import Recorded, page_file
from dpmedian.report.groups import page_of_groups
from dpmedian.report.page import page_of_release
from dpmedian.verification.authentic import match_in
from dpmedian.verification.groups import is_of_groups

__all__ = ["page", "recorded_page", "write_page"]


@page_file.register
def recorded_page(value: Recorded, path: str | os.PathLike[str], ledger: Any) -> Path:
    """Write the page of an object that has an audit record."""
    return write_page(value.to_dict(), path, None if ledger is None else ledger.to_dict())


def write_page(
    record: Mapping[str, Any], path: str | os.PathLike[str], ledger: Mapping[str, Any] | None = None
) -> Path:
    """Write the page of a parsed audit record. If a ledger (its `to_dict()`) is given, the page shows its entries."""
    text = page(record, ledger)
    file = Path(path)
    file.write_text(text, encoding="utf-8")
    return file


def page(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """Return the HTML of the page of a single release or of groups. If the ledger was not charged for the release,
    raise an error.
    """
    if ledger is not None and record["outcome"] != "planned":
        match = match_in(ledger["entries"], record)
        if not match.exact and not match.undigested:
            raise ValueError(
                "no entry of this ledger has the digest of the record: either this ledger was not charged for the "
                "release, or the record was changed afterwards. Name the ledger of the release; dpmedian verify "
                "RECORD --ledger LEDGER says more"
            )
    try:
        return page_of_groups(record, ledger) if is_of_groups(record) else page_of_release(record, ledger)
    except KeyError as missing:
        raise ValueError(f"the record has no entry {missing}") from None
    except (TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise ValueError(f"the record cannot be shown; dpmedian verify says more: {error}") from None
