"""American spelling of keywords; the names of version 0.2.0 keep working."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["american"]

Function = TypeVar("Function", bound=Callable[..., Any])


def american(function: Function) -> Function:
    """Accept `neighbors=` instead of `neighbours=`; both at once are an error."""

    @functools.wraps(function)
    def spelled(*arguments: Any, **named: Any) -> Any:
        if "neighbors" in named:
            if "neighbours" in named:
                raise TypeError("neighbors= and neighbours= are one argument in two spellings: give one of them")
            named["neighbours"] = named.pop("neighbors")
        return function(*arguments, **named)

    return cast(Function, spelled)
