"""Parts of a page that the pages about single releases and about groups share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dpmedian.accounting import RECORD, PrivacyCost
from dpmedian.digests import as_json
from dpmedian.mechanisms.stage import Stage
from dpmedian.planning.plan import Plan
from dpmedian.statistics import QUERIES
from dpmedian.verification import verify

__all__ = [
    "alarm",
    "checks",
    "delta_of",
    "document",
    "head",
    "note_for_readers",
    "notes",
    "paragraphs",
    "section",
    "spent",
    "stages",
    "tiles",
]

_HERE = Path(__file__).parent

# The delta at which a cost in rho is explained.
_DELTA = 1e-6

# The largest number of queries of a run that is shown.
_QUERIES = 200

_LEDGER = (
    "<p>Ask for the file of the ledger, because it shows whether this point and this date belong to the charged "
    "release.</p>\n"
)

# The page contains its style, its script and its record, so it may not load anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def document(title: str, sections: Iterable[str]) -> str:
    """The complete page."""
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in sections if part)
        + f"\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def delta_of(cost: PrivacyCost) -> float:
    """Return the delta at which the guarantee is stated: the requested delta, or 0 for pure differential privacy."""
    if cost.delta is not None:
        return cost.delta
    return 0.0 if cost.is_pure else max(_DELTA, cost.delta0)


def section(title: str, content: str) -> str:
    """Return a section, or nothing if the section has no content."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def paragraphs(texts: Iterable[str]) -> str:
    """Return texts as paragraphs."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def notes(found: Iterable[str]) -> str:
    """Return the notes of a release as a list, if there are any."""
    listed = "".join(f"<li>{note_for_readers(note)}</li>" for note in found)
    return f"<ul>{listed}</ul>" if listed else ""


def note_for_readers(note: str) -> str:
    """Return a note in words that the page uses, without names of the program."""
    return escape(note.replace("error_radius", "the predicted error"))


def head(title: str, record: Mapping[str, Any], what: str) -> str:
    """Return the title, the outcome, the date and the version."""
    badge = {
        "released": '<span class="badge good">released</span>',
        "failed": '<span class="badge bad">failed, and spent</span>',
        "planned": '<span class="badge">planned, nothing spent</span>',
    }[record["outcome"]]
    when = f"{escape(record['date'][:16].replace('T', ', '))} UTC, " if "date" in record else ""
    return (
        f"<header>\n<h1>{escape(title)}</h1>\n<p>{badge} {when}{escape(what)}, dpmedian "
        f"{escape(str(record['version']))}</p>\n</header>"
    )


def tiles(facts: Iterable[tuple[str, str, str]]) -> str:
    """Return the most important facts for the top of the page: names, values and notes.

    There is no line break at an equal sign in a value.
    """
    shown = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value).replace(' = ', '&nbsp;=&nbsp;')}"
        f"<small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    return f'<dl class="facts">{"".join(shown)}</dl>'


def alarm(record: Mapping[str, Any]) -> str:
    """Return the warning at the top of the page about a seeded release."""
    if not record.get("seeded"):
        return ""
    return (
        '<section class="alarm"><h2>This release protects nobody</h2><p>Its noise came from a seed. Anybody who knows '
        "or guesses the seed can remove the noise, so this release is for simulations and tests and must not be "
        "published.</p>"
        "</section>"
    )


def stages(plan: Plan, planned: bool) -> str:
    """Return a table of the queries of a plan, with their noise and their cost. If `planned`, no query was made yet."""
    names_of = ("Query", "Times, at most", "One record changes it by", "Noise", "Cost (rho)")
    rows = "".join(_row(names_of, stage) for stage in plan.stages)
    names = "".join(f"<th{' class=number' if column else ''}>{name}</th>" for column, name in enumerate(names_of))
    unit = "" if plan.cost.unit == RECORD else f" A record here is what one {plan.cost.unit} contributes."
    text = (
        "Only the answers to these queries "
        + ("will be" if planned else "were")
        + " computed from the data for the result, and every answer "
        + ("gets noise before it is used." if planned else "got noise before it was used.")
        + " The table states the most by which one record can change an answer. The larger the noise is in comparison, "
        f"the less an answer shows about one record.{unit} Noise is given as its standard deviation, unless the table "
        "says otherwise."
    )
    return (
        f'<p>{escape(text)}</p>\n<div class="wide"><table class="stack stages"><thead><tr>{names}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def spent(head: Sequence[str], rows: Sequence[Sequence[str]], rho: str) -> str:
    """Return the queries of a run and their costs, as a table that can be unfolded."""
    names = "".join(f"<th>{escape(name.capitalize())}</th>" for name in head)
    lines = (
        f"<tr><th>{escape(row[0])}</th>"
        + "".join(
            f'<td data-name="{escape(name)}">{escape(cell)}</td>' for name, cell in zip(head[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in rows[:_QUERIES]
    )
    more = len(rows) - _QUERIES
    rest = f'<p class="soft">{more:,} more rows are in the record</p>' if more > 0 else ""
    text = f"These queries were made, at these costs. The plan above states upper bounds. {rho}"
    return (
        f"<details><summary>What the run did</summary><p>{escape(text)}</p>"
        f'<div class="wide"><table class="stack"><thead><tr>{names}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        f"</div>{rest}</details>"
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
    return f"<tr><th>{escape(stage.name)}<small>{escape(QUERIES[stage.statistic])}</small></th>{numbers}</tr>"


def checks(record: Mapping[str, Any], ledger: bool) -> str:
    """Return the verdict about the claim, instructions for readers who check the claim themselves, and the record."""
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
        "Save the record. In a copy of the sources of dpmedian, which need Python and a Rust toolchain, run</p>\n"
        f"<pre>pip install .\ndpmedian verify record.json{' --ledger ledger.json' if ledger else ''}</pre>\n"
        f"{_LEDGER if ledger else ''}"
        '<p><button id="save" hidden>Save record.json</button></p>\n'
        "<details><summary>The record</summary>\n"
        f'<pre id="record">{escape(as_json(record), quote=False)}</pre></details>\n'
        '<p class="soft">A record cannot show two things: whether the program that it names really made it, and '
        "whether the budget, the method and all other settings (a radius, a center, scales, the cap of weights, listed "
        "groups) were chosen without looking at the data. Ask about both.</p>"
    )
