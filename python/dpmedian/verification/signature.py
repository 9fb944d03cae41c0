"""Signatures of audit records by the holder of the data: Ed25519, from the library `cryptography` (extra `sign`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmedian.digests import digest_of, sealed
from dpmedian.verification.check import Check

__all__ = ["sign", "signature_check"]

_ALGORITHM = "Ed25519"


def _message(record: Mapping[str, Any]) -> bytes:
    """Return the message that is signed: a fixed text, then the digest.

    Because of the fixed text, the signature cannot be used for any other purpose.
    """
    return f"dpmedian audit record\n{digest_of(record)}".encode()


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ImportError("signatures need the library cryptography: pip install 'dpmedian[sign]'") from error
    return serialization, ed25519


def sign(record: Mapping[str, Any], key: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record with a signature of its digest.

    Parameters
    ----------
    record : mapping
        A parsed audit record.
    key : path-like
        A PEM file with an Ed25519 private key without a password, as `openssl genpkey -algorithm ed25519` writes it.
    """
    serialization, ed25519 = _library()
    private = _loaded(key, lambda text: serialization.load_pem_private_key(text, None), "private")
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise ValueError(f"{key} is no Ed25519 private key: make one with openssl genpkey -algorithm ed25519")
    whole = sealed(record)
    return {**whole, "signature": {"algorithm": _ALGORITHM, "value": private.sign(_message(whole)).hex()}}


def signature_check(record: Mapping[str, Any], key: str | os.PathLike[str]) -> Check:
    """Check that the record has a signature that matches the public key in a PEM file."""
    serialization, ed25519 = _library()
    public = _loaded(key, serialization.load_pem_public_key, "public")
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise ValueError(f"{key} is no Ed25519 public key: openssl pkey -in private.pem -pubout writes it")
    question = f"the signature is by the key {Path(key).name}"
    signature = record.get("signature")
    if not isinstance(signature, Mapping) or signature.get("algorithm") != _ALGORITHM:
        return Check(question, ("the record has no Ed25519 signature",))
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(signature["value"]), _message(record))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return Check(question, ("the signature does not match this content and this key",))
    return Check(question)


def _loaded(key: str | os.PathLike[str], load: Any, kind: str) -> Any:
    try:
        return load(Path(key).read_bytes())
    except (ValueError, TypeError) as error:
        # The library's message says nothing about the key.
        raise ValueError(f"{key} is no {kind} key in PEM without a password: {type(error).__name__}") from None
