"""Draw the pictures of the README and the documentation, as a part of `make transcripts`."""

import dataclasses
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import dpmedian
from dpmedian.data import POSITIONS
from dpmedian.files import read_points

PICTURES = Path(__file__).parent / "pictures"


def front(release: dpmedian.Release, dark: bool) -> None:
    """Draw the picture of the front page: a cloud, its mean, which broken devices pull away, and the private median.

    The data are invented. Drawn twice, on a transparent ground, for light and for dark pages.
    """
    cloud, ink, muted, pulled = ("#aab4c0", "#ff6b81", "#c8ced6", "#ffb454") if dark else (
        "#7f8c9b", "#b2182b", "#48566a", "#b35c00"
    )  # fmt: skip
    points = read_points(POSITIONS).to_numpy()
    mean = points.mean(axis=0)
    figure, ax = plt.subplots(figsize=(5.6, 5.0), layout="constrained")
    ax.scatter(points[:, 0], points[:, 1], s=9, color=cloud, alpha=0.45, linewidths=0)
    ax.plot(*release.point, marker="+", markersize=22, markeredgewidth=3.2, color=ink)
    ax.plot(*mean, marker="x", markersize=13, markeredgewidth=3, color=pulled)
    label = {"fontsize": 13, "arrowprops": {"arrowstyle": "-", "linewidth": 1.2}}
    for text, place, at, color in (
        ("private geometric median", release.point, (431.0, 510.0), ink),
        ("mean: 60 of 2,000 devices\nreport (0, 0) and pull it away", mean, (422.5, 499.2), pulled),
    ):
        arrow = {**label["arrowprops"], "color": color}
        ax.annotate(text, place, xytext=at, color=color, fontsize=label["fontsize"], arrowprops=arrow, weight="bold")
    ax.set_xlim(416.0, 448.0)
    ax.set_ylim(497.5, 527.5)
    ax.set_aspect("equal")
    ax.set_xlabel("kilometers east", color=muted)
    ax.set_ylabel("kilometers north", color=muted)
    ax.tick_params(colors=muted)
    for spine in ax.spines.values():
        spine.set_visible(False)
    figure.savefig(PICTURES / f"front-{'dark' if dark else 'light'}.png", dpi=130, transparent=True)
    plt.close(figure)


def page(release: dpmedian.Release) -> None:
    """Draw the page of a release with a browser, if a browser is installed. The data and the date are invented."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("the picture of a page needs chromium: not drawn again")
        return
    shown = dataclasses.replace(release, name="typical place", seeded=False, date="2026-01-31T12:00:00+00:00")
    with tempfile.TemporaryDirectory() as folder:
        file = shown.report(Path(folder) / "page.html")
        target = f"--screenshot={PICTURES / 'page.png'}"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1040,1740"]
        profile = f"--user-data-dir={folder}/browser"
        subprocess.run([browser, *options, profile, target, file.as_uri()], check=True, capture_output=True)


def main() -> None:
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    positions = read_points(POSITIONS)
    release = dpmedian.geometric_median(positions, epsilon=1.0, delta=1e-6, seed=1)
    release.plot(positions).figure.savefig(PICTURES / "release.png", dpi=100)
    release.plan.plot().figure.savefig(PICTURES / "plan.png", dpi=100)
    for dark in (False, True):
        front(release, dark)
    page(release)


if __name__ == "__main__":
    main()
