"""A parameter that several functions share is explained in one docstring, and `help` of the others shows it, too.

In the source the others say ``As in `geometric_median`.`` of their parameters. When the package has been imported, the
explanation takes the place of these words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["complete_docstrings", "documented"]

Function = TypeVar("Function", bound=Callable[..., Any])

_FUNCTIONS: dict[str, Callable[..., Any]] = {}

_SECTION = re.compile(r"(?<=\nParameters\n----------\n).*?(?=\n\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\S[^\n]*)((?:\n[ ]+[^\n]*)*)", re.MULTILINE)
_AS_IN = re.compile(r"\s*As in `([\w.]+)`\.\s*")


def documented(function: Function) -> Function:
    """Register a public function whose parameters others refer to, or that refers to those of others."""
    _FUNCTIONS[function.__qualname__] = function
    return function


def complete_docstrings() -> None:
    """Replace every "As in" of the registered functions by what the other function says of these parameters."""
    for function in _FUNCTIONS.values():
        text = inspect.getdoc(function)
        if text is not None:  # Python -OO leaves docstrings out.
            function.__doc__ = _SECTION.sub(lambda found: "\n".join(_explained(found[0])), text)


def _explained(section: str) -> Iterator[str]:
    """The entries of a section, with those of another function where the section refers to it."""
    for header, body in _ENTRY.findall(section):
        reference = _AS_IN.fullmatch(body)
        if reference is None:
            yield header + body
        else:
            yield from _of(reference[1], [name.strip() for name in header.split(",")])


def _of(name: str, wanted: list[str]) -> Iterator[str]:
    """The entries of some parameters of a function, in the order of the function."""
    section = _SECTION.search(inspect.getdoc(_FUNCTIONS[name]) or "")
    left = set(wanted)
    for entry in _explained(section[0] if section else ""):
        header, _, body = entry.partition("\n")
        names, _, kind = header.partition(" : ")
        here = [one for one in names.split(", ") if one in left]
        if here:
            left -= set(here)
            yield f"{', '.join(here)}{' : ' if kind else ''}{kind}\n{body}"
    if left:
        raise LookupError(f"{name} explains no parameter {sorted(left)}")
