"""The noise of a wheel is fixed for a fixed key, and nothing else changes it.

A change of the vectors below changes the values for a `seed=`: call it `value-breaking` in the changelog and raise the
minor version. The distribution of the noise is tested with the samplers (src/sampler/tests.rs), and the distance of
discrete from continuous noise with the accounting (test_accounting.py).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpmedian
from dpmedian.statistics import Exact
from dpmedian.tape import Tape

# The tape rounds sigma up, so a number slightly below 2^40 gives 2^40.
SIGMA = 2.0**40 - 0.01
KEY = bytes(range(32))
ROOT = Path(__file__).parents[1]


def noise(tape: Tape) -> dict[str, list[int]]:
    """Each kind of noise once, in this order, from one tape."""
    zeros, zero = (Exact.stated(np.zeros(n, dtype=np.int64), 1.0) for n in (4, 1))
    drawn = {
        "gaussian": tape.gaussian("test", zeros, SIGMA).tolist(),
        "laplace": tape.laplace("test", zero, (3, 2**40)).tolist(),
        "geometric": tape.geometric("test", zero, (3, 2**40)).tolist(),
    }
    tape.hidden()  # It has a stream of its own, so that later noise does not depend on what is drawn from it.
    return {**drawn, "small gaussian": tape.gaussian("test", zeros, 2.99).tolist()}


def test_the_noise_of_a_key_is_stable():
    assert noise(Tape.draw(KEY)) == {
        "gaussian": [1119185914759, -451547147652, -370574918566, 1102801384586],
        "laplace": [384031918312],
        "geometric": [242010200478],
        "small gaussian": [6, 6, 1, 0],
    }


def test_the_second_block_of_a_key_is_stable():
    """Vectors beyond 1024 entries are drawn in blocks, each from a stream of its own."""
    drawn = Tape.draw(KEY).gaussian("test", Exact.stated(np.zeros(2050, dtype=np.int64), 1.0), SIGMA)
    assert drawn[[1023, 1024, 2048, 2049]].tolist() == [696753121639, 816160043262, -1582297246969, -771243038561]


def test_a_seed_is_the_key_and_its_release_is_stable():
    points = np.arange(400.0).reshape(200, 2) % 7.0
    release = dpmedian.geometric_median(points, rho=0.5, method="dpgd", radius=10.0, seed=5)
    assert release.point.tolist() == [2.4287897269038163, 3.1007973629944816]


SCRIPT = """
import warnings, numpy as np
warnings.simplefilter("ignore")
import dpmedian
from dpmedian.statistics import Exact
from dpmedian.tape import Tape
print(Tape.draw(bytes(range(32))).gaussian("test", Exact.stated(np.zeros(3000, dtype=np.int64), 1.0), 2.0**40).tolist())
points = np.arange(400.0).reshape(200, 2) % 7.0
print(dpmedian.geometric_median(points, rho=0.5, method="dpgd", radius=10.0, seed=5).point.tolist())
"""


@pytest.fixture(scope="module")
def plain() -> bytes:
    return subprocess.check_output([sys.executable, "-c", SCRIPT])


@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        (["-O"], {}),
        (["-OO", "-X", "dev"], {}),
        ([], {"RAYON_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"}),
        ([], {"DPMEDIAN_SEED": "1", "DPMEDIAN_DEBUG": "1", "DPMEDIAN_NOISE": "0", "DPMEDIAN_TEST": "1"}),
        ([], {"SEED": "1", "DEBUG": "1", "TEST": "1", "CI": "true", "RUST_BACKTRACE": "1", "PYTHONHASHSEED": "7"}),
    ],
)
def test_no_flag_or_variable_changes_the_noise(plain, flags, variables):
    seen = subprocess.check_output([sys.executable, *flags, "-c", SCRIPT], env={**os.environ, **variables})
    assert seen == plain


def test_the_environment_is_read_for_the_number_of_threads_only():
    """The sources are searched, because no list of variables can be complete.

    The tests of the sources may read any variable.
    """
    sources = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "crates").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    assert sources
    reading = re.compile(r"env::vars?(?:_os)?\b|option_env!|os\.environ|getenv")
    lines = [(path.name, line) for path in sources for line in path.read_text().splitlines()]
    found = [(name, line.strip()) for name, line in lines if reading.search(line)]
    assert [row for row in found if "RAYON_NUM_THREADS" not in row[1]] == []


def test_no_feature_of_the_crate_reaches_the_noise():
    """The core and the bindings have no features, so none with weaker noise can be left enabled."""
    gate = re.compile(r'\bfeature = "|debug_assertions')
    files = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "crates").rglob("*.rs")]
    assert files
    gates = [path.name for path in files if gate.search(path.read_text())]
    assert gates == []


def test_without_a_key_the_operating_system_decides():
    zeros = Exact.stated(np.zeros(8, dtype=np.int64), 1.0)
    drawn = {tuple(Tape.draw().gaussian("test", zeros, 2.0**40).tolist()) for _ in range(50)}
    assert len(drawn) == 50
