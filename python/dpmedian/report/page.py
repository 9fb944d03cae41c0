"""One page for those who approve, review or receive a release: a single file, without network and without private data.

It is made from the audit record, and from a ledger's public entries if there is one: nothing else is known to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dpmedian.planning.outlook import Outlook
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.release import region_of
from dpmedian.report.curves import chart, epsilon_curve, error_by_budget, error_by_size
from dpmedian.report.history import history
from dpmedian.report.parts import alarm, checks, delta_of, document, head, paragraphs, section, stages, tiles
from dpmedian.report.words import guarantee
from dpmedian.verification.reading import read

__all__ = ["page_of_release"]

# So many coordinates are shown; the record on the page has all of them.
_SHOWN = 24


def page_of_release(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """The page of a release, a failure or a plan."""
    found = read(record)
    plan = found if isinstance(found, Plan) else found.plan
    assert plan is not None
    title = record.get("name") or "Private geometric median"
    sections = [
        head(title, record, "differentially private geometric median"),
        alarm(record),
        _facts(found, plan),
        section("What was released", _outcome(found, plan)),
        section("What it promises", paragraphs(guarantee(plan.cost, delta_of(plan.cost)))),
        section("How much, and what else was possible", _curves(plan)),
        section("What was asked of the data", stages(plan)),
        section("What it cost", _cost(record, plan)),
        "" if ledger is None else section("The budget, and what else was spent of it", history(ledger, record)),
        section("How to check this", checks(record)),
    ]
    return document(title, sections)


def _facts(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    cost, parameters = plan.cost, plan.parameters
    changed = "replaced; their number is public" if cost.neighbours == "replace" else "added or removed"
    if parameters.private_size:
        size = getattr(found, "size", None)
        records = "private" if size is None else f"about {size:,}"
        told = "the number is private" + ("" if size is None else ", this one is noisy")
    else:
        records, told = f"{plan.n:,}", "this number is public"
    numbers, failure = 2 if parameters.geometry == "sphere" else plan.d, plan.prediction.failure
    expected = (
        ("Predicted error", f"{found.error_radius:.3g}", f"distance to the exact median, in {_unit(plan)}")
        if isinstance(found, Release) and found.error_radius is not None
        else ("Predicted failure", "below 1e-6" if failure < 1e-6 else f"{failure:.2g}", "probability of no result")
    )
    spent = f"rho = {cost.rho:.4g}"
    if parameters.budget.rho is not None:
        spent = f"epsilon = {cost.epsilon_at(delta_of(plan.cost)):.3g} at delta = {delta_of(plan.cost):.2g}"
    facts = [
        ("Privacy budget", str(parameters.budget), spent),
        ("Protects", f"one {cost.unit}", changed),
        ("Records", records, f"{told}; {numbers} {'number' if numbers == 1 else 'numbers'} each"),
        expected,
    ]
    return tiles(facts)


def _unit(plan: Plan) -> str:
    return "degrees of arc" if plan.parameters.geometry == "sphere" else "the unit of the data"


def _outcome(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    if isinstance(found, Plan):
        return paragraphs(
            [
                "Nothing yet: this is a plan, made from public parameters alone. What it would release is the private "
                "geometric median, the point whose sum of distances to all records is smallest, with noise that "
                "hides the contribution of everybody."
            ]
        )
    if isinstance(found, ReleaseFailed):
        return paragraphs(
            [
                f"No point: {found.message}. A failure tells something about the data as well, so it is an output "
                "like any other: it was made with the same noise, it keeps the same promise, and its cost is spent."
            ]
        )
    texts = [
        "A typical point of the data: the geometric median is the point whose sum of distances to all records is "
        "smallest, and a few extreme records hardly move it. This one was computed from noisy answers only."
    ]
    if found.error_radius is not None:
        texts.append(
            f"It is predicted to lie within {found.error_radius:.3g} of the exact median of these records"
            + ("" if found.scale is None else f", whose spread is about {found.scale:.3g}")
            + f", in {_unit(plan)}. These are protected in the same way."
        )
    region = region_of(found)
    if region is not None:
        texts.append(
            f"The median of the population lies within {region.radius:.3g} of it with a confidence of "
            f"{100.0 * region.level:.3g} %, if the records are an independent sample of the population."
        )
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    return _point(found) + paragraphs(texts) + (f"<ul>{notes}</ul>" if notes else "")


def _point(release: Release) -> str:
    names = release.columns or tuple(f"coordinate {index + 1}" for index in range(release.point.size))
    if release.columns is None and release.plan.parameters.geometry == "sphere":
        names = ("longitude", "latitude")
    values = release.point.tolist()
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{value:.9g}</dd></div>"
        for name, value in list(zip(names, values, strict=True))[:_SHOWN]
    )
    more = len(values) - _SHOWN
    rest = f'<p class="soft">and {more:,} more, which the record below has</p>' if more > 0 else ""
    return f'<dl class="point">{rows}</dl>{rest}\n'


def _curves(plan: Plan) -> str:
    texts, charts, outlook = ["The red dots are this release."], [], Outlook.of(plan)
    pairs = epsilon_curve(plan.cost, delta_of(plan.cost))
    if pairs is not None:
        charts.append(chart(pairs))
        texts.append(
            "What was spent is a promise about every epsilon at once, each with its own delta: the first curve has all "
            "pairs that are proved."
        )
    if outlook is not None:
        charts += [chart(error_by_size(outlook)), chart(error_by_budget(outlook))]
        texts.append(
            "The curves of the predicted error say what more or fewer records, or more or less budget, would have been "
            "worth. They follow from public numbers alone and were known before the data were looked at."
        )
    drawn = "\n".join(figure for figure in charts if figure)
    if not drawn:
        return ""
    return f'<div class="charts">\n<div>{paragraphs(texts)}</div>\n{drawn}\n</div>'


def _cost(record: Mapping[str, Any], plan: Plan) -> str:
    listed = "".join(f"<li>{escape(text)}</li>" for text in record["cost_explained"])
    shared = (
        "<p>The stages share one budget, so their costs do not add up: each says what it could have cost at most. What "
        "was charged is the cap on all of them together.</p>"
        if plan.calibrated.cap is not None
        else "<p>The costs of all stages add up to this.</p>"
    )
    return f"{shared}<ul>{listed}</ul>"
