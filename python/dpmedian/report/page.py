"""One page for those who approve, review or receive a release: a single file, without network and without private data.

It is made from the audit record, and from a ledger's public entries if there is one: nothing else is known to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dpmedian.accounting import RECORD
from dpmedian.mechanisms.stage import Stage
from dpmedian.planning.outlook import Outlook
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.record import as_json
from dpmedian.report.curves import chart, epsilon_curve, error_by_budget, error_by_size
from dpmedian.report.history import history
from dpmedian.report.words import QUESTIONS, guarantee
from dpmedian.verification import verify
from dpmedian.verification.reading import read

__all__ = ["page", "write_page"]

_HERE = Path(__file__).parent

# So many coordinates are shown; the record on the page has all of them.
_SHOWN = 24

# The delta at which a cost that was asked for in rho is explained.
_DELTA = 1e-6

# The page may load nothing from anywhere: its style, its script and its record are in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_page(
    record: Mapping[str, Any], path: str | os.PathLike[str], ledger: Mapping[str, Any] | None = None
) -> Path:
    """Writes the page of a parsed record, with the history of a ledger (its `to_dict()`) if one is given."""
    file = Path(path)
    file.write_text(page(record, ledger), encoding="utf-8")
    return file


def page(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """The HTML of the page."""
    found = read(record)
    plan = found if isinstance(found, Plan) else found.plan
    assert plan is not None
    title = record.get("name") or "Private geometric median"
    sections = [
        _head(title, record),
        _alarm(record),
        _facts(found, plan),
        _section("What was released", _outcome(found, plan)),
        _section("What it promises", _paragraphs(guarantee(plan.cost, _delta(plan)))),
        _section("How much, and what else was possible", _curves(plan)),
        _section("What was asked of the data", _stages(plan)),
        _section("What it cost", _cost(record, plan)),
        "" if ledger is None else _section("The budget, and what else was spent of it", history(ledger, record)),
        _section("How to check this", _checks(record)),
    ]
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + f"\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _delta(plan: Plan) -> float:
    """The delta at which the promise is told: the one that was asked for, or 0 for pure differential privacy."""
    if plan.cost.delta is not None:
        return plan.cost.delta
    return 0.0 if plan.cost.is_pure else max(_DELTA, plan.cost.delta0)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def _head(title: str, record: Mapping[str, Any]) -> str:
    badge = {
        "released": '<span class="badge good">released</span>',
        "failed": '<span class="badge bad">failed, and spent</span>',
        "planned": '<span class="badge">planned, nothing spent</span>',
    }[record["outcome"]]
    when = f"{escape(record['date'][:16].replace('T', ', '))} UTC, " if "date" in record else ""
    return (
        f"<header>\n<h1>{escape(title)}</h1>\n<p>{badge} {when}differentially private geometric median, dpmedian "
        f"{escape(str(record['version']))}</p>\n</header>"
    )


def _alarm(record: Mapping[str, Any]) -> str:
    if not record.get("seeded"):
        return ""
    return (
        '<section class="alarm"><h2>This release protects nobody</h2><p>Its noise came from a seed. Whoever knows or '
        "guesses the seed can remove the noise: it is for simulations and tests and must not be published.</p>"
        "</section>"
    )


def _facts(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    cost, parameters = plan.cost, plan.parameters
    changed = "replaced; their number is public" if cost.neighbours == "replace" else "added or removed"
    if parameters.private_size:
        size = getattr(found, "size", None)
        records = "private" if size is None else f"about {size:,}"
        told = "the number is private" + ("" if size is None else ", this one is noisy")
    else:
        records, told = f"{plan.n:,}", "this number is public"
    failure = plan.prediction.failure
    expected = (
        ("Predicted error", f"{found.error_radius:.3g}", f"distance to the exact median, in {_unit(plan)}")
        if isinstance(found, Release) and found.error_radius is not None
        else ("Predicted failure", "below 1e-6" if failure < 1e-6 else f"{failure:.2g}", "probability of no result")
    )
    spent = f"rho = {cost.rho:.4g}"
    if parameters.budget.rho is not None:
        spent = f"epsilon = {cost.epsilon_at(_delta(plan)):.3g} at delta = {_delta(plan):.2g}"
    facts = [
        ("Privacy budget", str(parameters.budget), spent),
        ("Protects", f"one {cost.unit}", changed),
        ("Records", records, f"{told}; {plan.d} {'number' if plan.d == 1 else 'numbers'} each"),
        expected,
    ]
    tiles = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    return f'<dl class="facts">{"".join(tiles)}</dl>'


def _unit(plan: Plan) -> str:
    return "degrees of arc" if plan.parameters.geometry == "sphere" else "the unit of the data"


def _outcome(found: Plan | Release | ReleaseFailed, plan: Plan) -> str:
    if isinstance(found, Plan):
        return _paragraphs(
            [
                "Nothing yet: this is a plan, made from public parameters alone. What it would release is the private "
                "geometric median, the point whose sum of distances to all records is smallest, with noise that "
                "hides the contribution of everybody."
            ]
        )
    if isinstance(found, ReleaseFailed):
        return _paragraphs(
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
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    return _point(found) + _paragraphs(texts) + (f"<ul>{notes}</ul>" if notes else "")


def _point(release: Release) -> str:
    names = release.columns or tuple(f"coordinate {index + 1}" for index in range(release.point.size))
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
    pairs = epsilon_curve(plan.cost, _delta(plan))
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
    return f'<div class="charts">\n<div>{_paragraphs(texts)}</div>\n{drawn}\n</div>'


def _stages(plan: Plan) -> str:
    head = ("Question", "Asked, at most", "Moves by", "Size of the noise", "Cost (rho)")
    rows = "".join(_row(head, stage) for stage in plan.stages)
    names = "".join(f"<th{' class=number' if column else ''}>{name}</th>" for column, name in enumerate(head))
    unit = "" if plan.cost.unit == RECORD else f" A record here is what one {plan.cost.unit} contributes."
    told = (
        "Only these questions were asked, and every answer got noise before anybody or anything saw it. One record can "
        f"move an answer by no more than what is stated here, and the noise hides that.{unit}"
    )
    return (
        f'<p>{escape(told)}</p>\n<div class="wide"><table class="stack stages"><thead><tr>{names}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(head: Sequence[str], stage: Stage) -> str:
    noise = {"Gaussian": "Gaussian", "Laplace": "Laplace, scale"}.get(stage.noise.kind, f"{stage.noise.kind}, scale")
    bound = f"{stage.noise.remark} " if stage.noise.remark in ("at least", "at most") else ""
    cells = [
        f"{stage.releases:,}" + (f"<small>{escape(stage.rule)}</small>" if stage.rule else ""),
        f"{stage.sensitivity:.4g}",
        f"{bound}{stage.noise.scale:.4g}<small>{escape(noise)}</small>",
        f"{'&le; ' if stage.capped else ''}{stage.cost.rho:.3g}",
    ]
    numbers = "".join(
        f'<td class="number" data-name="{escape(name)}">{cell}</td>' for name, cell in zip(head[1:], cells, strict=True)
    )
    return f"<tr><th>{escape(stage.name)}<small>{escape(QUESTIONS[stage.statistic])}</small></th>{numbers}</tr>"


def _cost(record: Mapping[str, Any], plan: Plan) -> str:
    listed = "".join(f"<li>{escape(text)}</li>" for text in record["cost_explained"])
    shared = (
        "<p>The stages share one budget, so their costs do not add up: each says what it could have cost at most. What "
        "was charged is the cap on all of them together.</p>"
        if plan.calibrated.cap is not None
        else "<p>The costs of all stages add up to this.</p>"
    )
    return f"{shared}<ul>{listed}</ul>"


def _checks(record: Mapping[str, Any]) -> str:
    found = verify(record)
    count = len(found.checks)
    verdict = (
        f'<p><span class="badge good">checked</span> When this page was made, {count} checks were computed again from '
        "the record, and the claim holds.</p>"
        if found.holds
        else '<p><span class="badge bad">does not hold</span> When this page was made, the claim did not hold: '
        f"{escape('; '.join(found.wrong))}.</p>"
    )
    listed = "".join(f"<li>{'wrong' if check.wrong else 'ok'}: {escape(check.question)}</li>" for check in found.checks)
    return (
        f"{verdict}<details><summary>What was checked</summary><ul>{listed}</ul></details>\n"
        "<p>Do not trust a page: anybody can check the record itself, without the data and without spending anything. "
        "Save it, and run</p>\n<pre>pip install dpmedian\ndpmedian verify record.json</pre>\n"
        '<p><button id="save" hidden>Save record.json</button></p>\n'
        "<details><summary>The record</summary>\n"
        f'<pre id="record">{escape(as_json(record), quote=False)}</pre></details>\n'
        '<p class="soft">What no record can show: that the program which made it was the one it names, and that '
        "radius, center, resolution and method were chosen without looking at the data. Ask for that.</p>"
    )
