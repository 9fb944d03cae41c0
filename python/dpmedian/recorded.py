"""What has an audit record: its text, and the page that is made of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["Recorded"]


class Recorded:
    """A plan, a release, a failure, or those of groups: all that is known about them is in `to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        """The audit record, as JSON can hold it."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """The SHA-256 digest of all content of the audit record, which a ledger keeps with its entry."""
        return str(self.to_dict()["digest"])

    def to_json(self) -> str:
        """The audit record as text."""
        from dpmedian.rendering.record import as_json

        return as_json(self.to_dict())

    def report(self, path: str | os.PathLike[str], *, ledger: Any = None) -> Path:
        """Writes a page about this, for those who approve or review it: one HTML file without network.

        It is made from the audit record alone, so it shows no private data.

        Parameters
        ----------
        path : path-like
            The file, which is overwritten.
        ledger : Ledger, optional
            Show what else was spent of it.

        Returns
        -------
        pathlib.Path
            The file.
        """
        from dpmedian.report import write_page

        return write_page(self.to_dict(), path, None if ledger is None else ledger.to_dict())
