"""Digests of JSON objects, which authenticate records and ledgers, and strict parsing of JSON."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["APART", "as_json", "canonical", "digest_of", "parse_object", "sealed"]

APART = ("digest", "signature")
"""The entries of a record that the digest does not cover: the digest itself, and the signature of the digest."""


def as_json(value: Mapping[str, Any]) -> str:
    """Return indented JSON, for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> bytes:
    """Return JSON in a canonical form, which depends on the values alone.

    Names are sorted, there is no white space, text is ASCII with escapes, and a number is the shortest decimal that
    gives the same double when it is read. An integer has no decimal point, because other programs write 1.0 as 1.
    """
    plain = json.loads(json.dumps(value, allow_nan=False), parse_float=_number)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number


def digest_of(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of all content of a record except the entries in `APART`.

    Only the hash of the queries of a trace is part of the content. So the queries can be removed from a record without
    changing its digest.
    """
    content = {name: value for name, value in record.items() if name not in APART}
    if isinstance(trace := content.get("trace"), Mapping):
        content["trace"] = {name: value for name, value in trace.items() if name != "data"}
    return "sha256:" + hashlib.sha256(canonical(content)).hexdigest()


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with its digest as the last entry."""
    return {**{name: value for name, value in record.items() if name not in APART}, "digest": digest_of(record)}


def parse_object(text: str | bytes | bytearray, what: str) -> dict[str, Any]:
    """Return the JSON object of a text, or raise a ValueError that explains the problem.

    Raises
    ------
    ValueError
        If the text is not JSON, is nested too deeply, is not an object, has a repeated name in an object (different
        readers would use different values), or has a number that is not finite. `what` is the beginning of the message.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"{what}: it is not JSON of a sensible depth") from None
    except ValueError as error:
        remedy = (
            "; pass the text of a JSON object, such as open(path).read(). dpmedian.verify also accepts the path of a "
            "file that exists"
        )
        remedy = "" if text[:1] in ("{", b"{") else remedy
        raise ValueError(f"{what}: it is not JSON ({error}){remedy}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{what}: it must be a JSON object with the entry 'format'")
    return found


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{twice!r} occurs twice in one object")
    return found


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")
