"""Release, write a page and verify with the installed package; the release workflow runs this for each wheel."""

import tempfile
from pathlib import Path

import numpy as np

import dpmedian

points = np.random.default_rng(0).normal(size=(500, 3))
release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
with tempfile.TemporaryDirectory() as folder:
    release.report(str(Path(folder) / "page.html"))
if not dpmedian.verify(release.to_json()).holds:
    raise SystemExit("the record of a release does not verify")
print("dpmedian", dpmedian.__version__, "numpy", np.__version__, release.point)
