"""Release, write a page and verify with the installed package, in two threads at once.

The release workflow and `make wheel` run this script for each wheel, with no other package than numpy installed.
"""

import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import dpmedian

points = np.random.default_rng(0).normal(size=(500, 3))
plan = dpmedian.plan(500, 3, epsilon=1.0, delta=1e-6)
ledger = dpmedian.Ledger(epsilon=2.5, delta=1e-5)
with ThreadPoolExecutor(2) as pool:
    releases = list(pool.map(lambda _: plan.run(points, ledger=ledger), range(2)))
if len(ledger.entries) != 2:
    raise SystemExit("two releases were not charged twice")
for release in releases:
    with tempfile.TemporaryDirectory() as folder:
        release.report(str(Path(folder) / "page.html"))
    if not dpmedian.verify(release.to_json()).holds:
        raise SystemExit("the record of a release does not verify")
    if np.linalg.norm(release.point) > 1.0:
        raise SystemExit(f"the point {release.point} is far from the median, which is near the origin")
# Arrays with a single element convert to numbers in some versions of numpy.
line = points[:, :1] + 5.0
found = [dpmedian.geometric_median(line, rho=0.5).point, dpmedian.k_medians(line, 1, rho=0.5).point[0]]
if max(abs(float(np.ravel(point)[0]) - 5.0) for point in found) > 1.0:
    raise SystemExit(f"medians on the line are at {found}, far from 5")
unlocked = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
if unlocked and sys._is_gil_enabled():
    raise SystemExit("the package brought the interpreter lock back")
python = f"{sys.version_info[0]}.{sys.version_info[1]}{'t' if unlocked else ''}"
print("Python", python, "numpy", np.__version__, "dpmedian", dpmedian.__version__, releases[0].point)
