"""The page about a release, for people who approve, review or receive the release. The page is a single file that loads
nothing and shows nothing private.

The page is made from the audit record, and from the entries of a ledger if one is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dpmedian.places import Places
from dpmedian.planning.plan import Plan
from dpmedian.planning.prediction_curves import PredictionCurves
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.trace import TRACE_HEAD, trace_rows
from dpmedian.report.curves import chart, epsilon_curve, error_by_budget, error_by_size
from dpmedian.report.history import history
from dpmedian.report.parts import (
    alarm,
    checks,
    delta_of,
    document,
    head,
    notes,
    paragraphs,
    section,
    spent,
    stages,
    tiles,
)
from dpmedian.report.picture import map_of
from dpmedian.report.words import guarantee, limits, who
from dpmedian.spherical import kilometers
from dpmedian.step import Step
from dpmedian.verification.reading import read

__all__ = ["page_of_release"]

# The largest number of coordinates that are shown of a point, and the largest number for each of several centers. The
# record has all coordinates.
_SHOWN, _COORDINATES = 24, 6

_CIRCLES = (
    "Each dot is a center, with the number of its cluster in the table. The shaded circle around a dot shows the "
    "radius of the cluster."
)


def page_of_release(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """Return the page about a release, a failure or a plan."""
    found = read(record)
    plan = found if isinstance(found, Plan) else found.plan
    assert plan is not None
    planned, (what, kind) = isinstance(found, Plan), _kind(plan)
    title = record.get("name") or what
    sections = [
        head(title, record, f"differentially private {kind}"),
        alarm(record),
        _facts(found, plan),
        section("What would be released" if planned else "What was released", _outcome(found, plan)),
        section("Who is protected", paragraphs(who(plan.cost, delta_of(plan.cost)))),
        section("What it promises", paragraphs(guarantee(plan.cost, delta_of(plan.cost)))),
        section("What it does not promise", paragraphs(limits())),
        section("The cost, the error, and what else was possible", _curves(found, plan)),
        section("Queries to the data", stages(plan, planned) + _trace(found)),
        section("What it would cost" if planned else "What it cost", _cost(record, plan)),
        "" if ledger is None else section("The budget of the ledger", history(ledger, record)),
        section("How to check this", checks(record, ledger is not None)),
    ]
    return document(title, sections)


def _kind(plan: Plan) -> tuple[str, str]:
    """Return the kind of the release, as a title and as words in a sentence."""
    if plan.parameters.threshold is not None:
        return "Private robust step", "robust step"
    if plan.parameters.clusters is not None:
        return f"{plan.parameters.clusters} private medians", "k-medians"
    return "Private geometric median", "geometric median"


def _facts(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    cost, parameters = plan.cost, plan.parameters
    relation = cost.protection.relation
    changed = "one record differs; the number of records is public" if relation.size_is_public else relation.changed
    if parameters.private_size:
        size = getattr(found, "size", None)
        records = "private" if size is None else f"about {size:,}"
        text = "the number is private" + ("" if size is None else "; the value shown is noisy")
    else:
        records, text = f"{plan.n:,}", "this number is public"
    numbers, failure = 2 if parameters.geometry == "sphere" else plan.d, plan.prediction.failure
    expected = (
        ("Predicted error", distance(found.error_radius, plan), "distance to the exact median of these records")
        if isinstance(found, Release) and found.error_radius is not None
        else ("Predicted failure", "below 1e-6" if failure < 1e-6 else f"{failure:.2g}", "probability of no result")
    )
    spent = f"rho = {cost.rho:.4g}"
    if parameters.budget.rho is not None:
        spent = f"epsilon = {cost.epsilon_at(delta_of(plan.cost)):.3g} at delta = {delta_of(plan.cost):.2g}"
    facts = [
        ("Privacy budget", str(parameters.budget), spent),
        ("Protects", f"one {cost.unit}", changed),
        ("Records", records, f"{text}; each has {numbers:,} {'coordinate' if numbers == 1 else 'coordinates'}"),
        expected,
    ]
    return tiles(facts)


def distance(value: float, plan: Plan) -> str:
    """Return a distance as text, in kilometers on the globe, and otherwise without a unit."""
    if plan.parameters.geometry == "sphere":
        return f"{kilometers(value):.3g} km"
    return f"{value:.3g}"


def _unit(plan: Plan) -> str:
    """Return the unit of a distance, as a remark after the distance."""
    if plan.parameters.geometry == "sphere":
        return ""
    return ", in the unit of the columns" if plan.parameters.scales is None else ", in units of the public scales"


def _outcome(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    if isinstance(found, Plan):
        return paragraphs(
            [
                "Nothing yet: this is a plan, made from public parameters alone. It would release "
                + _promised(plan)
                + ", with noise that limits what the result shows about any person."
            ]
        )
    if isinstance(found, ReleaseFailed):
        return paragraphs(
            [
                f"No point: {found.message}. A failure shows something about the data, too, so it counts as an output: "
                "it was made with the same noise, the same promise holds for it, and its cost is spent."
            ]
        )
    if isinstance(found, Places):
        return _clusters(found, plan)
    if isinstance(found, Step):
        return _step(found)
    texts = [
        "This is a typical point of the data. The geometric median is the point whose sum of distances to all records "
        "is smallest, and a few extreme records hardly move it. This point was computed from noisy answers only, so "
        "it is not exact."
    ]
    if found.error_radius is not None:
        about = (
            ""
            if found.scale is None
            else f" About 40 % of the records lie within {distance(found.scale, plan)} of the point."
        )
        texts.append(
            f"The point is predicted to lie within {distance(found.error_radius, plan)} of the exact median of these "
            f"records{_unit(plan)}. This is true in about 19 of 20 runs if the data form one cluster, and in fewer "
            f"runs if they form several clusters. The prediction is computed from noisy numbers, too.{about}"
        )
    region = found.shown_region
    if region is not None:
        texts.append(
            "The interval below a number is a confidence interval. Suppose that the records are an independent sample "
            f"of a population. Then, with a confidence of about {100.0 * region.level:.3g} %, the interval contains "
            "this coordinate of the population's median."
        )
    texts += _scales(found, plan)
    return _point(found) + paragraphs(texts) + notes(found.notes)


def _scales(found: Release, plan: Plan) -> list[str]:
    """Return a sentence about public scales, if there are any."""
    if plan.parameters.scales is None:
        return []
    named = zip(found.columns or map(str, range(1, plan.d + 1)), plan.parameters.scales, strict=True)
    listed = ", ".join(f"{name}: {scale:g}" for name, scale in named)
    return [
        "The columns were divided by public scales, so that all columns count alike. The released values were "
        f"multiplied by the scales again, so they are in the units of the columns. The scales are {listed}."
    ]


def _promised(plan: Plan) -> str:
    """Return what a plan would release, as words in a sentence."""
    if plan.parameters.threshold is not None:
        return "the mean direction from a public point to the records"
    if plan.parameters.clusters is not None:
        return f"{plan.parameters.clusters} private centers, so that every record is near to one of them"
    return "the private geometric median, the point whose sum of distances to all records is smallest"


def _step(step: Step) -> str:
    """Return sentences about the direction of a robust step and its coherence."""
    low, high = step.coherence_interval
    threshold = step.plan.parameters.threshold
    counts = "each record counts alike, however far away it lies" + (
        f"; a record nearer than {threshold:g} counts less" if threshold else ""
    )
    texts = [
        f"This is a direction: the mean of the unit vectors from a public point to the records. So {counts}. It was "
        f"released with noise of a standard deviation of {step.noise_std:.3g} in every coordinate.",
        f"The coherence, the length of this mean without its noise, is about {step.coherence:.3g}, and with a "
        f"confidence of 95 % it lies between {low:.3g} and {high:.3g}. If all these records are honest, additional "
        f"hostile records cannot reverse the step as long as they are fewer than about {100.0 * step.withstands:.3g} % "
        "of all records.",
    ]
    if step.point.size == 0:
        texts.append(
            f"The step has {step.plan.d:,} coordinates, which are too many for the record. Instead, the record has the "
            "SHA-256 digest of the coordinates as 64-bit little-endian numbers."
        )
    return (_point(step) if step.point.size else "") + paragraphs(texts) + notes(step.notes)


def _clusters(places: Places, plan: Plan) -> str:
    """Return a table of the clusters."""
    columns = places.names[:_COORDINATES]
    names = ("Cluster", *columns, "Size, noisy", "Radius")
    top = "".join(f"<th{' class=number' if column else ''}>{escape(name)}</th>" for column, name in enumerate(names))
    rows = ""
    for index, (center, size, radius) in enumerate(zip(places.centers, places.sizes, places.radii, strict=True)):
        cells = [*(f"{x:.6g}" for x in center[:_COORDINATES].tolist()), f"{size:,.0f}", distance(float(radius), plan)]
        text = "".join(
            f'<td class="number" data-name="{escape(name)}">{cell}</td>'
            for name, cell in zip(names[1:], cells, strict=True)
        )
        rows += f'<tr><th data-name="Cluster">{index}</th>{text}</tr>'
    more = len(places.names) - _COORDINATES
    rest = f'<p class="soft">{more:,} more coordinates are in the record below</p>' if more > 0 else ""
    texts = [
        "These are several typical places: centers for which the sum of the distances from each record to its nearest "
        "center is small. The centers were computed from noisy answers only.",
        f"A size is the number of records nearest to a center, with noise of a standard deviation of "
        f"{places.size_sigma:.3g}. A radius is about the median distance of these records from their "
        f"center{_unit(plan)}.",
        *_scales(places, plan),
    ]
    table = f'<table class="stack"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>'
    sphere = plan.parameters.geometry == "sphere"
    circles = [
        {"outcome": "released", "key": index, "point": center, "error_radius": radius}
        for index, (center, radius) in enumerate(zip(places.centers.tolist(), places.radii.tolist(), strict=True))
    ]
    picture = map_of(circles, places.names, sphere, plan.parameters.scales)
    picture += f'<p class="soft">{_CIRCLES}</p>' if picture else ""
    return f'{paragraphs(texts)}{picture}<div class="wide">{table}</div>{rest}{notes(places.notes)}'


def _point(release: Release) -> str:
    names = release.columns or tuple(f"coordinate {index + 1}" for index in range(release.point.size))
    if release.columns is None and release.plan.parameters.geometry == "sphere":
        names = ("longitude", "latitude")
    region = release.shown_region
    values = release.point.tolist()
    intervals = [None] * len(values) if region is None else region.intervals.tolist()
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{value:.9g}{_interval(ends)}</dd></div>"
        for name, value, ends in list(zip(names, values, intervals, strict=True))[:_SHOWN]
    )
    more = len(values) - _SHOWN
    rest = f'<p class="soft">{more:,} more coordinates are in the record below</p>' if more > 0 else ""
    return f'<dl class="point">{rows}</dl>{rest}\n'


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"<small>95 %: {ends[0]:.6g} to {ends[1]:.6g}</small>"


def _curves(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    this = "plan" if isinstance(found, Plan) else "release"
    texts, charts, curves = [f"The red dots are this {this}."], [], PredictionCurves.of(plan)
    pairs = epsilon_curve(plan.cost, delta_of(plan.cost))
    if pairs is not None:
        charts.append(chart(pairs))
        texts.append(
            "The cost implies a promise for every epsilon, each with its own delta. The first curve shows all these "
            "pairs."
        )
    if curves is not None:
        charts += [chart(error_by_size(curves)), chart(error_by_budget(curves))]
        core_radius = found.scale if isinstance(found, Release) else None
        text = "" if core_radius is None else f": here about {distance(core_radius, plan)}{_unit(plan)}"
        texts.append(
            "The curves of the predicted error show this error for other numbers of records and for other budgets. "
            "These curves follow from public numbers alone and were known before the data were read. The core radius "
            f"of the data is the distance from their median within which 40 % of the records lie{text}."
        )
    drawn = "\n".join(figure for figure in charts if figure)
    if not drawn:
        return ""
    return f'<div class="charts">\n<div>{paragraphs(texts)}</div>\n{drawn}\n</div>'


def _trace(found: Plan | Release | ReleaseFailed) -> str:
    """Return the queries of the run, if the record contains them."""
    trace = None if isinstance(found, Plan) else found.trace
    if trace is None:
        return ""
    return spent(TRACE_HEAD, trace_rows(trace), f"Together they spent rho = {trace.rho:.4g}.")


def _cost(record: Mapping[str, Any], plan: Plan) -> str:
    listed = "".join(f"<li>{escape(text)}</li>" for text in record["cost_explained"])
    shared = (
        "<p>The stages share one budget. The table shows the most that each stage can cost, so these costs do not add "
        "up to the charged cost, which is a cap on all stages together.</p>"
        if plan.calibrated.cap is not None
        else "<p>The charged cost is the sum of the costs of all stages.</p>"
    )
    return f"{shared}<p>For those who check the arithmetic:</p><ul>{listed}</ul>"
