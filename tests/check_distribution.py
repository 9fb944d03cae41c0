"""Install the files that `make wheel` wrote to dist/ into empty environments, as a new user would. That target runs
this script.

    python tests/check_distribution.py dist [PYTHON ...]

The wheel is tried with the newest and the oldest supported numpy, with this interpreter and each of the others that are
given. Then the wheel is tried with each of its extras, and then the source distribution, which needs a Rust toolchain.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

# The first numpy with wheels for an interpreter that is not below the floor of pyproject.toml.
FLOORS = {"3.10": "1.24.0", "3.11": "1.24.0", "3.12": "1.26.0", "3.13": "2.1.0", "3.14": "2.3.2"}

SMOKE = Path(__file__).with_name("smoke.py").read_text("utf-8")

# A use of each extra, with nothing but this extra installed.
DOORS = {
    "plot": """
import dpmedian, dpmedian.data
points = dpmedian.data.load_positions()
release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
release.plot(points).figure.savefig("release.png")
release.plan.plot().figure.savefig("plan.png")
""",
    "sklearn": """
import dpmedian.data, dpmedian.sklearn
estimator = dpmedian.sklearn.PrivateGeometricMedian(epsilon=1.0, delta=1e-6)
print(estimator.fit(dpmedian.data.load_positions()).location_)
""",
    "opendp": """
import dpmedian.data, dpmedian.opendp, opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
points = dpmedian.data.load_positions()
domain = dp.numpy.array2_domain(norm=1e3, p=2, size=len(points), num_columns=2, T=float)
print(dpmedian.opendp.make_geometric_median(domain, dp.change_one_distance(), 0.1)(points))
""",
    "files": """
import sys, dpmedian.cli, dpmedian.data, pyarrow, pyarrow.parquet
points = dpmedian.data.load_positions()
pyarrow.parquet.write_table(pyarrow.table({"x": points[:, 0], "y": points[:, 1]}), "points.parquet")
sys.exit(dpmedian.cli.main(["release", "points.parquet", "--epsilon", "1", "--delta", "1e-6"]))
""",
}


def install_and_run(label: str, *packages: str, python: str = sys.executable, check: str = SMOKE) -> None:
    """Make an environment with only these packages and their requirements, and run a script in it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        fresh = str(Path(folder) / "bin" / "python")
        subprocess.run([fresh, "-m", "pip", "install", "--quiet", *packages], check=True)
        print(f"{label}:", flush=True)
        subprocess.run([fresh, "-c", check], check=True, cwd=folder)


def version(python: str) -> str:
    """Return the version of an interpreter, such as 3.13, or 3.14t if it is free-threaded."""
    script = (
        "import sys, sysconfig; t = sysconfig.get_config_var('Py_GIL_DISABLED');"
        "print('%d.%d' % sys.version_info[:2] + ('t' if t else ''))"
    )
    return subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def main(folder: Path, others: list[str]) -> None:
    (abi3,), (sdist,) = folder.glob("*-abi3-*.whl"), folder.glob("*.tar.gz")
    for python in [sys.executable, *others]:
        name = version(python)
        (wheel,) = folder.glob(f"*-cp{name.replace('.', '')}-*.whl") if name.endswith("t") else [abi3]
        install_and_run(f"Python {name}, newest numpy", str(wheel.resolve()), python=python)
        if floor := FLOORS.get(name.rstrip("t")):
            install_and_run(f"Python {name}, oldest numpy", str(wheel.resolve()), f"numpy=={floor}", python=python)
    for extra, check in DOORS.items():
        install_and_run(f"wheel, extra {extra}", f"{abi3.resolve()}[{extra}]", check=check)
    install_and_run("source distribution", str(sdist.resolve()))


main(Path(sys.argv[1]), sys.argv[2:])
