"""Installs what `make wheel` left in dist/ into empty environments, as a stranger would; run by that target.

The wheel at numpy's newest release and at its floor, then the source distribution, which needs a Rust toolchain.
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
"""


def install_and_run(label: str, *packages: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        print(f"{label}:", flush=True)
        subprocess.run([python, "-c", CHECK], check=True, cwd=folder)


def main(folder: Path) -> None:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    install_and_run("wheel, newest numpy", str(wheel.resolve()))
    floor = FLOORS.get(sys.version_info[:2])
    if floor is not None:
        install_and_run("wheel, oldest numpy", str(wheel.resolve()), f"numpy=={floor}")
    install_and_run("source distribution", str(sdist.resolve()))


main(Path(sys.argv[1]))
