"""A new user reads a public docstring once and knows what to pass."""

import importlib
import inspect
from collections.abc import Callable

import pytest

import dpmedian
import dpmedian.building_blocks
import dpmedian.data
import dpmedian.files
import dpmedian.nonprivate
import dpmedian.plot

PLACES = (dpmedian, dpmedian.building_blocks, dpmedian.nonprivate, dpmedian.files, dpmedian.plot, dpmedian.data)
PUBLIC = {
    f"{place.__name__}.{name}": value
    for place in PLACES
    for name in place.__all__
    if inspect.isfunction(value := getattr(place, name))
}
PUBLIC["dpmedian.Plan.run"] = dpmedian.Plan.run


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_of_a_public_function_is_explained(name):
    """Parameters are explained in numpydoc's sections, which `help` and editors show."""
    function = PUBLIC[name]
    text = inspect.getdoc(function)
    assert "Returns\n-------" in text
    assert unexplained(function) == set()


def unexplained(made: Callable[..., object]) -> set[str]:
    """The parameters that no heading of the docstring names."""
    parameters = {parameter for parameter in inspect.signature(made).parameters if parameter != "self"}
    text = inspect.getdoc(made)
    section = text.split("Parameters\n----------")[1].split("Returns\n-------")[0] if parameters else ""
    headings = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return parameters - {name.strip() for line in headings for name in line.split(" : ")[0].split(",")}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("dpmedian", "Ledger"),
        ("dpmedian.sklearn", "PrivateGeometricMedian"),
        ("dpmedian.opendp", "make_geometric_median"),
        ("dpmedian.flower", "PrivateGeometricMedian"),
    ],
)
def test_every_parameter_of_what_users_make_is_explained(module, name):
    pytest.importorskip(
        {"sklearn": "sklearn", "opendp": "opendp", "flower": "flwr"}.get(module.split(".")[-1], "numpy")
    )
    made = getattr(importlib.import_module(module), name)
    assert unexplained(made) == set()


def test_a_parameter_that_another_function_explains_is_explained_here_too():
    """In the source, `plan` says "As in `geometric_median`"; `help` shows the explanation."""
    section = 'resolution : float, optional\n    The smallest distance that matters. "loc_dpgd",'
    for function in (dpmedian.geometric_median, dpmedian.plan, dpmedian.k_medians, dpmedian.geometric_medians):
        assert section in inspect.getdoc(function)
    for name, function in PUBLIC.items():
        assert name.startswith(("dpmedian.nonprivate", "dpmedian.files")) or "As in `" not in inspect.getdoc(function)


def test_a_name_that_has_moved_says_where_it_is():
    for name in ("Block", "above_threshold", "radius_finder"):
        with pytest.raises(AttributeError, match=r"has moved: it is dpmedian\.building_blocks\."):
            getattr(dpmedian, name)
    with pytest.raises(AttributeError, match="no attribute"):
        dpmedian.no_such_name  # noqa: B018
