"""A page for the people who approve, review or receive a release: a single file that loads nothing and shows nothing
private.

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

# The largest numbers of coordinates of a point, and of each of several centers, that are shown. The record has all of
# them.
_SHOWN, _COORDINATES = 24, 6

_CIRCLES = "Each dot is a center, with its number in the table, and the shaded circle around it has its radius."


def page_of_release(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """The page of a release, a failure or a plan."""
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
        section("How much, and what else was possible", _curves(found, plan)),
        section("Queries to the data", stages(plan, planned) + _trace(found)),
        section("What it would cost" if planned else "What it cost", _cost(record, plan)),
        "" if ledger is None else section("The budget, and what else was spent of it", history(ledger, record)),
        section("How to check this", checks(record, ledger is not None)),
    ]
    return document(title, sections)


def _kind(plan: Plan) -> tuple[str, str]:
    """The kind of the release, as a title and in a sentence."""
    if plan.parameters.threshold is not None:
        return "Private robust step", "robust step"
    if plan.parameters.clusters is not None:
        return f"{plan.parameters.clusters} private medians", "k-medians"
    return "Private geometric median", "geometric median"


def _facts(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    cost, parameters = plan.cost, plan.parameters
    relation = cost.protection.relation
    changed = "one differs; their number is public" if relation.size_is_public else relation.changed
    if parameters.private_size:
        size = getattr(found, "size", None)
        records = "private" if size is None else f"about {size:,}"
        text = "the number is private" + ("" if size is None else ", this one is noisy")
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
    """A distance with its unit: kilometers on the globe, otherwise the unit of the columns."""
    if plan.parameters.geometry == "sphere":
        return f"{kilometers(value):.3g} km"
    return f"{value:.3g}"


def _unit(plan: Plan) -> str:
    """The unit of a distance, as a remark after it."""
    if plan.parameters.geometry == "sphere":
        return ""
    return ", in the unit of the columns" if plan.parameters.scales is None else ", in units of the public scales"


def _outcome(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    if isinstance(found, Plan):
        return paragraphs(
            [
                "Nothing yet: this is a plan, made from public parameters alone. What it would release is "
                + _promised(plan)
                + ", with noise that limits what it shows of anybody."
            ]
        )
    if isinstance(found, ReleaseFailed):
        return paragraphs(
            [
                f"No point: {found.message}. A failure tells something about the data as well, so it is an output "
                "like any other: it was made with the same noise, it keeps the same promise, and its cost is spent."
            ]
        )
    if isinstance(found, Places):
        return _clusters(found, plan)
    if isinstance(found, Step):
        return _step(found)
    texts = [
        "A typical point of the data. The geometric median is the point whose sum of distances to all records is "
        "smallest, and a few extreme records hardly move it. This one was computed from noisy answers only, so it is "
        "not exact."
    ]
    if found.error_radius is not None:
        about = (
            "" if found.scale is None else f" About 40 % of the records lie within {distance(found.scale, plan)} of it."
        )
        texts.append(
            f"It is predicted to lie within {distance(found.error_radius, plan)} of the exact median of these "
            f"records{_unit(plan)}. This is true in about 19 of 20 runs if the data form one cluster, and in fewer if "
            f"they form several. The prediction is computed from noisy numbers, too.{about}"
        )
    region = found.shown_region
    if region is not None:
        texts.append(
            "The interval below a number is a confidence interval. Suppose that the records are an independent "
            "sample of a "
            f"population. Then, with a confidence of about {100.0 * region.level:.3g} %, it contains this "
            "coordinate of the "
            "population's median."
        )
    texts += _scales(found, plan)
    return _point(found) + paragraphs(texts) + notes(found.notes)


def _scales(found: Release, plan: Plan) -> list[str]:
    """A sentence about public scales, if there are any."""
    if plan.parameters.scales is None:
        return []
    named = zip(found.columns or map(str, range(1, plan.d + 1)), plan.parameters.scales, strict=True)
    listed = ", ".join(f"{name}: {scale:g}" for name, scale in named)
    return [
        "The columns were divided by public scales, so that they count alike, and what was released is in the units of "
        f"the columns again. The scales are {listed}."
    ]


def _promised(plan: Plan) -> str:
    """What a plan would release, in a sentence."""
    if plan.parameters.threshold is not None:
        return "the mean direction from a public point to the records"
    if plan.parameters.clusters is not None:
        return f"{plan.parameters.clusters} private centers that are near to all records"
    return "the private geometric median, the point whose sum of distances to all records is smallest"


def _step(step: Step) -> str:
    """The direction of a robust step, and its coherence."""
    low, high = step.coherence_interval
    threshold = step.plan.parameters.threshold
    counts = "each record counts alike, however far away it lies" + (
        f"; a record nearer than {threshold:g} counts less" if threshold else ""
    )
    texts = [
        f"A direction: the mean of the unit vectors from a public point to the records, so that {counts}. It was "
        f"released with noise of a standard deviation of {step.noise_std:.3g} in every coordinate.",
        f"The coherence, the length of this mean without its noise, is about {step.coherence:.3g}, and with a "
        f"confidence of 95 % it lies between {low:.3g} and {high:.3g}. If all these records are honest, hostile "
        "records beside them would not turn the step around while they are fewer than about "
        f"{100.0 * step.withstands:.3g} % of all.",
    ]
    if step.point.size == 0:
        texts.append(
            f"The step has {step.plan.d:,} coordinates, too many for a record, which has the SHA-256 of their 64-bit "
            "little-endian bytes instead."
        )
    return (_point(step) if step.point.size else "") + paragraphs(texts) + notes(step.notes)


def _clusters(places: Places, plan: Plan) -> str:
    """A table of the clusters."""
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
    rest = f'<p class="soft">and {more:,} more coordinates, which the record below has</p>' if more > 0 else ""
    texts = [
        "Several typical places: centers for which the sum of the distances from each record to the nearest center is "
        "small. They were computed from noisy answers only.",
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
    rest = f'<p class="soft">and {more:,} more, which the record below has</p>' if more > 0 else ""
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
            "The cost is a promise about every epsilon at once, each with its own delta: the first curve has all pairs "
            "that are proved."
        )
    if curves is not None:
        charts += [chart(error_by_size(curves)), chart(error_by_budget(curves))]
        core_radius = found.scale if isinstance(found, Release) else None
        text = "" if core_radius is None else f": here about {distance(core_radius, plan)}{_unit(plan)}"
        texts.append(
            "The curves of the predicted error show the error with more or fewer records, and another budget. "
            "They follow from public numbers alone and were known before the data were read. The core radius of "
            f"the data is the distance from their median within which 40 % of the records lie{text}."
        )
    drawn = "\n".join(figure for figure in charts if figure)
    if not drawn:
        return ""
    return f'<div class="charts">\n<div>{paragraphs(texts)}</div>\n{drawn}\n</div>'


def _trace(found: Plan | Release | ReleaseFailed) -> str:
    """The queries of the run, if the record has them."""
    trace = None if isinstance(found, Plan) else found.trace
    if trace is None:
        return ""
    return spent(TRACE_HEAD, trace_rows(trace), f"Together they spent rho = {trace.rho:.4g}.")


def _cost(record: Mapping[str, Any], plan: Plan) -> str:
    listed = "".join(f"<li>{escape(text)}</li>" for text in record["cost_explained"])
    shared = (
        "<p>The stages share one budget, so their costs do not add up: each says what it can cost at most. What is "
        "charged is the cap on all of them together.</p>"
        if plan.calibrated.cap is not None
        else "<p>The costs of all stages add up to this.</p>"
    )
    return f"{shared}<p>For those who check the arithmetic:</p><ul>{listed}</ul>"
