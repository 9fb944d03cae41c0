"""American spelling of keywords. The names of version 0.2.0 can still be used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["american"]

Function = TypeVar("Function", bound=Callable[..., Any])


def american(function: Function) -> Function:
    """Accept `neighbors=` instead of `neighbours=`. Passing both is an error."""

    @functools.wraps(function)
    def spelled(*arguments: Any, **named: Any) -> Any:
        if "neighbors" in named:
            if "neighbours" in named:
                raise TypeError("neighbors= and neighbours= are two spellings of one argument: pass only one of them")
            named["neighbours"] = named.pop("neighbors")
        return function(*arguments, **named)

    return cast(Function, spelled)
