"""Shared explanations of parameters. A parameter of several functions is explained in one docstring, and `help` of the
other functions shows this explanation, too.

In the source, the docstrings of the other functions contain ``As in `geometric_median`.`` for such parameters. After
the import of the package, these words are replaced by the explanation.
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
    """Register a public function whose docstring refers to the parameters of other functions, or is referred to."""
    _FUNCTIONS[function.__qualname__] = function
    return function


def complete_docstrings() -> None:
    """Replace every "As in" in the docstrings of the registered functions by the explanation in the other function."""
    for function in _FUNCTIONS.values():
        text = inspect.getdoc(function)
        if text is not None:  # With python -OO there are no docstrings.
            function.__doc__ = _SECTION.sub(lambda found: "\n".join(_explained(found[0])), text)


def _explained(section: str) -> Iterator[str]:
    """The entries of a section. References to another function are replaced by the entries of this function."""
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
