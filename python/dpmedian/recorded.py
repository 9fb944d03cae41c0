"""The forms of the objects of this package: text, HTML, an audit record, CSV, a picture and a page.

Each form is a generic function that is only declared here. The modules that implement the forms (`rendering/`,
`plot.py` and similar modules, `report/`, `verification/`) register their functions for the types that they show, and
the package imports them. So an object can be displayed although its own module does not import a module of a higher
layer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

from dpmedian.digests import as_json

__all__ = ["Recorded", "Shown", "View", "as_csv", "as_record", "as_view", "page_file", "picture", "release_from"]


@dataclass(frozen=True)
class View:
    """The printed form and the notebook form."""

    text: str
    html: str


def _unregistered(value: object) -> TypeError:
    return TypeError(f"nothing is registered that shows a {type(value).__name__}")


@singledispatch
def as_view(value: object) -> View:
    """The printed form and the notebook form of an object."""
    raise _unregistered(value)


@singledispatch
def as_record(value: object) -> dict[str, Any]:
    """The audit record as a JSON object."""
    raise _unregistered(value)


@singledispatch
def as_csv(value: object) -> str:
    """Comma-separated values with a header."""
    raise _unregistered(value)


@singledispatch
def picture(value: object, *arguments: Any) -> Any:
    """The axes or the figure of a picture. The arguments are those of the drawing method."""
    raise _unregistered(value)


@singledispatch
def page_file(value: object, path: str | os.PathLike[str], ledger: Any) -> Path:
    """The file to which a page was written."""
    raise _unregistered(value)


@singledispatch
def release_from(text: object) -> Any:
    """The release of an audit record, from its text."""
    raise _unregistered(text)


class Shown:
    """An object with a text and a notebook form."""

    def __repr__(self) -> str:
        return as_view(self).text

    def _repr_html_(self) -> str:
        return as_view(self).html


class Recorded:
    """A plan, a release, a failure, or the plan or releases of groups.

    `to_dict` contains all information about the object.
    """

    def to_dict(self) -> dict[str, Any]:
        """The audit record: the planned or released values, every stage with its sensitivity and noise, and the parts
        of the cost.

        Apart from the released values, the record does not depend on the data, so it may be published like the release.
        `dpmedian.verify` computes its claims again.
        """
        return as_record(self)

    @property
    def digest(self) -> str:
        """The SHA-256 digest of all content of the audit record, which a ledger keeps with its entry."""
        return str(self.to_dict()["digest"])

    def to_json(self) -> str:
        """The audit record as text."""
        return as_json(self.to_dict())

    def report(self, path: str | os.PathLike[str], *, ledger: Any = None) -> Path:
        """Write a page about this object, for the people who approve or review it. The page is one HTML file that loads
        nothing from the network.

        The page is made from the audit record alone, so it shows no private data.

        Parameters
        ----------
        path : path-like
            The file, which is overwritten.
        ledger : Ledger, optional
            A ledger, whose entries are shown on the page.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return page_file(self, path, ledger)
