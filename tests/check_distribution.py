"""Installs what `make wheel` left in dist/ into empty environments, as a stranger would; run by that target.

The wheel at numpy's newest release and at its floor, the wheel with each of its extras, then the source distribution,
which needs a Rust toolchain.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

# The first numpy with wheels for this interpreter that is not below the floor of pyproject.toml.
FLOORS = {(3, 10): "1.24.0", (3, 11): "1.24.0", (3, 12): "1.26.0", (3, 13): "2.1.0"}

CHECK = """
import importlib.metadata as metadata, numpy, dpmedian
points = numpy.random.default_rng(0).normal(size=(500, 3))
release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
names = sorted(each.metadata["Name"].lower() for each in metadata.distributions())
assert set(names) <= {"dpmedian", "numpy", "pip", "setuptools"}, names
print("dpmedian", dpmedian.__version__, "numpy", numpy.__version__, release.point)
release.report("page.html")
assert dpmedian.verify(release.to_json()).holds
"""

# What each extra is for, with nothing but that extra installed.
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


def install_and_run(label: str, *packages: str, check: str = CHECK) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        print(f"{label}:", flush=True)
        subprocess.run([python, "-c", check], check=True, cwd=folder)


def main(folder: Path) -> None:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    install_and_run("wheel, newest numpy", str(wheel.resolve()))
    floor = FLOORS.get(sys.version_info[:2])
    if floor is not None:
        install_and_run("wheel, oldest numpy", str(wheel.resolve()), f"numpy=={floor}")
    for extra, check in DOORS.items():
        install_and_run(f"wheel, extra {extra}", f"{wheel.resolve()}[{extra}]", check=check)
    install_and_run("source distribution", str(sdist.resolve()))


main(Path(sys.argv[1]))
