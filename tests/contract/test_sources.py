"""Every source is registered, and none reveals a number."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import dpmedian.sources
from conftest import opened
from contract.registry import SOURCES, cloud
from dpmedian._core import Exact, Points, Tape
from dpmedian.parameters import PublicParameters
from dpmedian.statistics import Statistic

PARAMETERS = PublicParameters.of(20, 2, rho=1.0)


def source_classes() -> set[type]:
    """The classes of the package that answer statistics. Records that arrive one by one answer a single statistic."""
    found = set()
    for module in pkgutil.iter_modules(dpmedian.sources.__path__, "dpmedian.sources."):
        if module.name.endswith((".protocol", ".arriving")):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and value.__module__ == module.name and hasattr(value, "answer"):
                found.add(value)
    return found


def test_every_source_is_registered():
    assert {type(make(cloud(20, 2, seed=0), PARAMETERS)) for make in SOURCES.values()} == source_classes()


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_shows_opaque_answers_and_the_dimension_only(name):
    source = SOURCES[name](cloud(20, 2, seed=0), PARAMETERS)
    public = {attribute for attribute in dir(source) if not attribute.startswith("_")}
    assert public - {"of", "weighted"} == {"advance", "answer", "d", "local", "sample", "sample_by_coins"}
    assert isinstance(source.answer(Statistic("gradient", theta=np.zeros(2), bits=20)), Exact)
    assert source.local is None or isinstance(source.local, Points)
    assert str(cloud(20, 2, seed=0)[0, 0])[:6] not in repr(source)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_draws_the_same_sample(name):
    points, question = cloud(20, 2, seed=0), Statistic("gradient", theta=np.zeros(2), bits=20)
    found = [
        opened(SOURCES[kind](points, PARAMETERS).sample(Tape.draw(bytes(32)).hidden(), 7).answer(question)).tolist()
        for kind in (name, "array")
    ]
    assert found[0] == found[1]
    everything = SOURCES[name](points, PARAMETERS).sample(Tape.draw(bytes(32)).hidden(), 50)
    assert np.array_equal(
        opened(everything.answer(question)), opened(SOURCES["array"](points, PARAMETERS).answer(question))
    )
