"""A map of released points as SVG. The map is made from the audit record alone. It loads nothing and shows nothing
private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from dpmedian.postprocess import reach_of_map
from dpmedian.spherical import kilometers, on_a_map, west_of

__all__ = ["map_of"]

_WIDTH, _MARGIN = 720.0, 56.0
# The opacity of one circle, and the largest sum of the opacities of all circles. With these limits, dots and names stay
# visible.
_SHADE, _SHADES = 0.25, 2.0
# The smallest and the largest height of the map. The height depends on the points.
_LOWEST, _HIGHEST = 260.0, 620.0

# The approximate width of a letter, on a screen and on a phone, and the height of a line. The first and the last decide
# which names overlap and are left out. The second decides on which side of its point a name stands. On a phone, letters
# are wider relative to the map.
_LETTER, _WIDEST, _LINE = 7.0, 13.0, 14.0


def map_of(
    groups: Sequence[Mapping[str, Any]], columns: Sequence[str], sphere: bool, scales: Sequence[float] | None = None
) -> str:
    """Return a map of released points in two coordinates, or an empty string if there is none. Each point has a circle
    of its `error_radius`, if it is known, and its name, if there is room.

    With public scales the map is in units of the scales, like the radius.
    """
    shown = [group for group in groups if group["outcome"] == "released"]
    if len(columns) != 2 or not shown:
        return ""
    points = np.array([group["point"] for group in shown], dtype=float) / (scales or (1.0, 1.0))
    if sphere:
        points[:, 0] = on_a_map(points[:, 0], west_of(points[:, 0]))
    # On a map in degrees, a degree of longitude is shorter than a degree of latitude.
    narrow = max(math.cos(math.radians(float(np.median(points[:, 1])))), 0.05) if sphere else 1.0
    reach = reach_of_map(points * (narrow, 1.0), [group["error_radius"] or 0.0 for group in shown])
    (left, low), (right, high) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    across, up = (right - left) * narrow + 2.0 * reach, high - low + 2.0 * reach
    room = _WIDTH - 2.0 * _MARGIN
    scale = min(room / across if across else math.inf, (_HIGHEST - 2.0 * _MARGIN) / up if up else math.inf)
    if not math.isfinite(scale):
        scale = 1.0
    height = max(up * scale + 2.0 * _MARGIN, _LOWEST)
    center = ((left + right) / 2.0, (low + high) / 2.0)
    circles, dots, names = [], [], []
    boxes: list[tuple[float, float, float]] = []
    named: set[str] = set()
    for group, (x, y) in zip(shown, points.tolist(), strict=True):
        at = _WIDTH / 2.0 + (x - center[0]) * narrow * scale, height / 2.0 - (y - center[1]) * scale
        if group["error_radius"] is not None:
            circles.append(_circle("error", at, group["error_radius"] * scale))
        title = escape(", ".join(map(str, _parts(group))))
        text = str(_parts(group)[0])
        name = "" if text in named else _name(text, at, boxes)
        named |= {text} if name else set()
        dots.append(f"<g><title>{title}</title>{_circle('here', at, 4.0)}</g>")
        names.append(name)
    bar, text = _ruler(across / 2.0 or 1.0, sphere)
    text += "" if scales is None else " in units of the scales"
    length = bar * scale / (kilometers(1.0) if sphere else 1.0)
    ruler = (
        f'<line class="ruler" x1="{_MARGIN:.1f}" x2="{_MARGIN + length:.1f}" y1="{height - 18:.1f}" '
        f'y2="{height - 18:.1f}"/>'
        f'<text class="tick" x="{_MARGIN:.1f}" y="{height - 24:.1f}">{escape(text)}</text>'
    )
    label = f"map of {len(shown)} released points, {columns[0]} to the right and {columns[1]} upwards"
    axes = (
        f'<text class="label" x="{_WIDTH / 2.0:.1f}" y="{height - 8:.1f}" text-anchor="middle">'
        f"{escape(columns[0])}</text>"
        f'<text class="label" x="14" y="{height / 2.0:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {height / 2.0:.1f})">{escape(columns[1])}</text>'
    )
    return (
        f'<figure class="map"><svg viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f'<rect class="frame" x="1" y="1" width="{_WIDTH - 2:.0f}" height="{height - 2:.0f}"/>'
        f'<g fill-opacity="{min(_SHADE, _SHADES / len(shown)):.3f}">{"".join(circles)}</g>'
        f"{''.join(dots)}{''.join(names)}{ruler}{axes}</svg></figure>"
    )


def _name(text: str, at: tuple[float, float], boxes: list[tuple[float, float, float]]) -> str:
    """Return a name beside its point, or nothing if the name would overlap another name."""
    long = _LETTER * len(text)
    end = at[0] + 8.0 + _WIDEST * len(text) > _WIDTH - 6.0
    left, top = (at[0] - 8.0 - long if end else at[0] + 8.0), at[1] - 6.0
    if any(abs(top - y) < _LINE and left < right and start < left + long for start, right, y in boxes):
        return ""
    boxes.append((left, left + long, top))
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="name" x="{at[0] - 8.0 if end else left:.1f}" y="{top:.1f}"{anchor}>{escape(text)}</text>'


def _parts(group: Mapping[str, Any]) -> list[Any]:
    key = group["key"]
    return key if isinstance(key, list) else [key]


def _circle(kind: str, at: tuple[float, float], radius: float) -> str:
    return f'<circle class="{kind}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:.1f}"/>'


def _ruler(half: float, sphere: bool) -> tuple[float, str]:
    """Return the largest round length that is at most `half`, and its label, in kilometers on the globe."""
    rough = half * (kilometers(1.0) if sphere else 1.0)
    power = 10.0 ** math.floor(math.log10(rough))
    length = max(power * step for step in (1.0, 2.0, 5.0) if power * step <= rough)
    return length, f"{length:g} km" if sphere else f"{length:g}"
