"""Profiles: one frozen table of constants, consumed by one code path."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Profile"]


@dataclass(frozen=True)
class Profile:
    """The constants of the paper's algorithms that are ours to choose."""

    name: str

    @staticmethod
    def named(name: str) -> Profile:
        if not isinstance(name, str) or name not in _PROFILES:
            raise ValueError(f"profile must be one of {sorted(_PROFILES)}, got {name!r}")
        return _PROFILES[name]


_PROFILES = {profile.name: profile for profile in (Profile("default"), Profile("paper"))}
