"""The description of a protection: the neighbor relation, and the unit in which neighbors differ.

Sensitivities, costs, ledgers and records take a `Protection`. No other module compares the name of a relation with a
string, because the properties of a `Relation` say what the relation means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from dpmedian.accounting.arguments import require_encodable

__all__ = [
    "ADD_REMOVE",
    "RECORD",
    "REPLACE",
    "Neighbours",
    "Protection",
    "Relation",
    "neighbours_of",
    "relation_of",
    "unit_of",
]

Neighbours = Literal["replace", "add_remove"]
"""The names of the relations."""

RECORD = "record"
"""The label of the smallest unit, a single row."""


@dataclass(frozen=True)
class Relation:
    """A neighbor relation between data sets.

    `size_is_public` states whether neighbors have the same number of units. This number is then public.
    `sensitivity_gain` is the sensitivity of a centered sum (such as a gradient) under replacement, divided by its
    sensitivity under this relation. `changed` states in words what happens to a unit.
    """

    name: Neighbours
    size_is_public: bool
    sensitivity_gain: int
    changed: str


REPLACE = Relation("replace", size_is_public=True, sensitivity_gain=1, changed="replaced")
ADD_REMOVE = Relation("add_remove", size_is_public=False, sensitivity_gain=2, changed="added or removed")

_RELATIONS: dict[object, Relation] = {relation.name: relation for relation in (REPLACE, ADD_REMOVE)}


def relation_of(neighbours: object) -> Relation:
    """Return the relation of this name, or raise an error that names all of them."""
    found = _RELATIONS.get(neighbours) if isinstance(neighbours, str) else None
    if found is None:
        raise ValueError(f"neighbours must be one of {get_args(Neighbours)}, got {neighbours!r}")
    return found


def neighbours_of(value: object) -> Neighbours:
    """Return the name of a relation, checked."""
    return relation_of(value).name


def unit_of(value: object) -> str:
    """Return the label of a unit of privacy, checked: a string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"unit must be a label such as 'record' or 'user', got {value!r} ({type(value).__name__})")
    if not value:
        raise ValueError("unit must not be empty: pass the label of the protected unit, such as 'record' or 'user'")
    require_encodable("unit", value)
    return value


@dataclass(frozen=True)
class Protection:
    """The neighbor relation, the protected unit, and a limit on the weight of a record.

    `neighbours` is the name of the relation, and `unit` is the label of the protected unit. `weight_max` is the public
    cap of weights, or None if every record counts once.
    """

    neighbours: Neighbours = "replace"
    unit: str = RECORD
    weight_max: float | None = None

    def __post_init__(self) -> None:
        relation_of(self.neighbours)
        unit_of(self.unit)

    @property
    def relation(self) -> Relation:
        """The relation as an object."""
        return _RELATIONS[self.neighbours]

    @property
    def weighted(self) -> bool:
        """Whether records count with weights."""
        return self.weight_max is not None

    @property
    def size_is_public(self) -> bool:
        """Whether the number of records is public.

        With weights the size is the sum of the weights, which is never public, because a replaced record may change it.
        """
        return self.relation.size_is_public and not self.weighted

    @property
    def is_default(self) -> bool:
        """Whether a single record is replaced."""
        return self.relation is REPLACE and self.unit == RECORD

    def require_group(self, group: str, k: int, exactly: object) -> None:
        """Raise an error unless at most k steps from neighbor to neighbor lead from one data set to another in which a
        group of k units is changed.
        """
        unit = self.unit
        if group == unit:
            return
        if group == RECORD:
            raise ValueError(f"a {RECORD!r} is not a group of units {unit!r}: use cost.per_record()")
        if self.relation.size_is_public and exactly is not True:
            raise ValueError(
                f"under neighbours = 'replace' a {group!r} of at most {k} units {unit!r} has no bound, because a "
                f"replaced {group!r} may change the number of units {unit!r}, and a release may show this number; "
                "release under 'add_remove', "
                f"or pass exactly=True if every {group!r} has exactly {k} units {unit!r} in all data sets"
            )

    def require_records(self) -> None:
        """Raise an error unless steps from neighbor to neighbor lead from one data set to another in which one record
        is changed.
        """
        unit = self.unit
        if self.relation.size_is_public:
            raise ValueError(
                f"a cost per {unit!r} under neighbours = 'replace' gives no bound for one {RECORD!r}, because a "
                f"{RECORD!r} that moves to another {unit!r} may change the number of units {unit!r}, and the release "
                f"may show this number; release under 'add_remove', or keep a dpmedian.Ledger with unit={unit!r}"
            )
