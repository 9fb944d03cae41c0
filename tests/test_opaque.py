"""An exact answer can be read only through a tape. Every other way that Python offers is tried."""

from __future__ import annotations

import copy
import ctypes
import json
import pickle

import numpy as np
import pytest

from dpmedian._core import Coins, Exact, Message, Points, Tape
from dpmedian.statistics import Statistic, bound

POINTS = Points(np.array([[1.0, 2.0], [3.0, 4.0], [-5.0, 6.0]]))
SECRET = 7_340_033


@pytest.fixture(params=["answer", "stated"])
def exact(request) -> Exact:
    if request.param == "answer":
        return POINTS.answer(Statistic("gradient", theta=np.zeros(2), bits=20))
    return Exact.stated(np.array([SECRET, SECRET + 1]), 1.0)


@pytest.mark.parametrize(
    "read",
    [int, float, complex, list, tuple, iter, bytes, memoryview, lambda x: x[0], lambda x: x + 0, lambda x: x < 1,
     lambda x: -x, lambda x: x.values, lambda x: x.__array__(), lambda x: x.open(),
     lambda x: x.__dict__, lambda x: x.__getstate__()["values"], lambda x: np.frombuffer(x, dtype=np.int64),
     json.dumps, pickle.dumps, copy.copy, copy.deepcopy, lambda x: x.tolist(), lambda x: x.item(0), ctypes.c_long],
)  # fmt: skip
def test_no_number_comes_out(exact, read):
    with pytest.raises((TypeError, AttributeError, ValueError, KeyError)):
        read(exact)


def test_numpy_sees_an_object_and_no_number(exact):
    assert np.asarray(exact).dtype == object


def test_its_text_shows_no_value():
    exact = Exact.stated(np.array([SECRET]), 1.0)
    shown = f"{exact!r} {exact!s} {exact}"
    assert str(SECRET) not in shown
    assert str(SECRET) not in str(dir(exact))


def test_equality_and_hash_do_not_depend_on_the_values():
    one, same, other = (Exact.stated(np.array([value]), 1.0) for value in (SECRET, SECRET, SECRET + 1))
    assert (one == same) == (one == other) == False  # noqa: E712
    assert len({hash(one), hash(same), hash(other)}) == 3, "identity decides, and no value"


def test_records_show_no_number_either():
    public = {name for name in dir(POINTS) if not name.startswith("_")}
    samples = {"sample", "sample_by_coins", "weighted"}
    assert public == {"answer", "concatenate", "d", "descend", "draw_lattice", "n", "read", *samples}
    with pytest.raises(TypeError):
        memoryview(POINTS)  # type: ignore[arg-type]
    with pytest.raises((TypeError, AttributeError)):
        pickle.dumps(POINTS)


def test_a_tape_that_draws_keeps_nothing():
    tape = Tape.draw(bytes(32))
    tape.gaussian("test", POINTS.answer(Statistic("ranks", thresholds=np.zeros(2), bits=20)), 2.0**25)
    assert tape.entries() == []


def test_a_caller_cannot_state_a_smaller_sensitivity():
    """The tape has no such argument, and calibration uses the sensitivity of the value."""
    tape, exact = Tape.record(bytes(32)), POINTS.answer(Statistic("gradient", theta=np.zeros(2), bits=20))
    with pytest.raises(TypeError):
        tape.gaussian("test", exact, 2.0**25, 1e-3)  # type: ignore[call-arg]
    with pytest.raises((TypeError, AttributeError)):
        exact.sensitivity = 1e-3  # type: ignore[misc, assignment]
    with pytest.raises((TypeError, AttributeError)):
        exact.sensitivity.replace = 1e-3  # type: ignore[misc]
    tape.gaussian("test", exact, 2.0**25)
    assert tape.entries()[0][1] == bound("gradient", d=2, bits=20)[0].replace


def test_shards_of_different_queries_do_not_add_up():
    other = Points(np.array([[7.0, 8.0]]))
    asked, again = (Statistic("gradient", theta=np.zeros(2), bits=20) for _ in range(2))
    Exact.sum([POINTS.answer(asked), other.answer(asked)])
    for question in (
        again,
        Statistic("gradient", theta=np.ones(2), bits=20),
        Statistic("ranks", thresholds=np.zeros(2), bits=20),
    ):
        with pytest.raises(ValueError, match="same query"):
            Exact.sum([POINTS.answer(asked), other.answer(question)])
    pairs = Statistic("largest ball counts", radii=[1.0], m=1, n=3)
    with pytest.raises(ValueError, match="adds over records"):
        Exact.sum([POINTS.answer(pairs), other.answer(pairs)])
    with pytest.raises(ValueError, match="adds over records"):
        Exact.sum([Exact.stated(np.array([1]), 1.0)] * 2)


def test_no_record_counts_twice():
    other, asked = Points(np.array([[7.0, 8.0]])), Statistic("gradient", theta=np.zeros(2), bits=20)
    whole = Points.concatenate([POINTS, other])
    sample = POINTS.sample(Tape.draw(bytes(32)).hidden(), 2)
    for points in (POINTS, whole, sample):
        with pytest.raises(ValueError, match="records in common"):
            Exact.sum([POINTS.answer(asked), points.answer(asked)])
        with pytest.raises(ValueError, match="records in common"):
            Points.concatenate([POINTS, points])


def test_a_stream_of_hidden_randomness_is_used_once():
    """Two uses would be choices that depend on each other."""
    coins = (1, 1)
    uses = [
        lambda stream: POINTS.sample(stream, 2),
        lambda stream: POINTS.sample_by_coins(stream, coins),
        Coins.of,
        lambda stream: Statistic("pair counts", stream=stream, radii=[1.0], pairings=1, bits=20),
        lambda stream: Message.places(stream, [POINTS.n], 2),
        lambda stream: Message.places_by_coins(stream, [POINTS.n], coins),
    ]
    for first in uses:
        for second in uses:
            stream = Tape.draw(bytes(32)).hidden()
            first(stream)
            with pytest.raises(RuntimeError, match="already used"):
                second(stream)


def test_noise_for_one_value_is_refused_for_a_vector():
    tape, exact = Tape.draw(bytes(32)), POINTS.answer(Statistic("gradient", theta=np.zeros(2), bits=20))
    for draw in (tape.laplace, tape.geometric):
        with pytest.raises(ValueError, match="vector of length one"):
            draw("test", exact, (1, 2**20))
        draw("test", exact.pick(0), (1, 2**20))


class WithFloat(np.ndarray):
    """An array that converts to a number, as arrays with one element do before numpy 2.4."""

    def __float__(self):
        return float(self[0])

    def __index__(self):
        return int(self[0])


def test_an_array_with_one_element_is_not_taken_for_a_number():
    theta = np.array([0.5]).view(WithFloat)
    exact = Points(np.zeros((3, 1))).answer(Statistic("gradient", theta=theta, bits=20))
    assert isinstance(exact, Exact)
