"""The report as one page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from prism_motor import _page as shell
from prism_motor.analysis.figures import arm_colours
from prism_motor.report import charts, markup, run_tables, tables, words
from prism_motor.report.arms import Arm
from prism_motor.report.attachments import Analysis, AnyRun, Attachment, Grid
from prism_motor.report.cells import Cell, Chapter, Table
from prism_motor.report.curves import AXES, QUANTITIES, make_curves
from prism_motor.report.manipulation import ManipulationRun
from prism_motor.report.markup import folded, render_table, titled
from prism_motor.report.measures import NOMINAL
from prism_motor.report.results import Results

_STYLE = """
.eyebrow { color: var(--soft); font-size: 0.8rem; letter-spacing: 0.08em; margin: 0;
  text-transform: uppercase; }
.lead { font-size: 1.06rem; }
.findings { padding: 0.2rem 1.1rem 0.3rem; background: var(--panel); border-radius: 8px;
  margin: 1.1rem 0; }
.findings ul { padding-left: 1.1rem; max-width: 58rem; }
.findings h3 { margin: 0.9rem 0 0; }
h2 small { color: var(--soft); font-size: 0.82rem; font-weight: 400; margin-left: 0.35rem; }
.cards { display: grid; gap: 1.1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(310px, 100%), 1fr)); }
.cards figure { max-width: 540px; }
video { display: block; width: 100%; height: auto; border-radius: 8px; background: #000; }
.pictures figure { margin: 1rem 0; }
.pictures img { width: auto; max-width: 100%; max-height: 44rem; padding: 6px;
  border: 1px solid var(--line); }
"""

_PLAY = """
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
  const seen = new IntersectionObserver((entries) => {
    for (const one of entries) {
      if (one.isIntersecting) one.target.play().catch(() => {}); else one.target.pause();
    }
  }, { threshold: 0.5 });
  for (const film of document.querySelectorAll('video')) seen.observe(film);
}
"""
"""Films play while they can be seen."""


@dataclass(frozen=True)
class Contents:
    """Everything that stands on the page."""

    title: str
    """Heading."""
    intro: str
    """A paragraph before the numbers, plain text; may be empty."""
    results: Sequence[Results]
    """One a task."""
    manipulation: Sequence[Chapter]
    """Runs that learned from demonstrations, one a task."""
    films: Sequence[tuple[AnyRun, Attachment]]
    """Films with the runs that they show."""
    analyses: Sequence[Analysis]
    """What analyses found."""
    sweeps: Sequence[Table]
    """Tuning before the comparison."""
    problems: Sequence[str]
    """What is missing or was left out."""
    command: str
    """Makes this page again."""
    made: str
    """When, and by which version."""


def render(contents: Contents) -> str:
    """Return the page as text."""
    several = len(contents.results) > 1
    sections = [
        f"<p class='eyebrow'>PRISM report</p><h1>{escape(contents.title)}</h1>",
        _paragraph(contents.intro),
        *_summary(contents.results, several),
        _films(contents.films),
        *(_section(results, several) for results in contents.results),
        *(_chapter(chapter) for chapter in contents.manipulation),
        *(_analysis(analysis) for analysis in contents.analyses),
        *(f"<h2>{escape(t.title)}</h2>{render_table(t)}" for t in contents.sweeps),
        _problems(contents.problems),
        _provenance(contents),
    ]
    style, script = charts.STYLE + markup.STYLE + _STYLE, charts.SCRIPT + _PLAY
    return shell.render_page(contents.title, sections, style=style, script=script)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _summary(results: Sequence[Results], several: bool) -> list[str]:
    if not results:
        return []
    return [
        f"<p class='lead'>{escape(words.lead(results))}</p>",
        _findings(results, several),
    ]


def _findings(all_results: Sequence[Results], several: bool) -> str:
    blocks = []
    for results in all_results:
        heading = f"<h3>{escape(results.section.title)}</h3>" if several else ""
        blocks.append(heading + _sentences(words.findings(results)))
    return f"<div class='findings'>{''.join(blocks)}</div>{_READING}"


_READING = (
    "<p class='note'>These sentences are computed from the numbers below. &ldquo;Better&rdquo; and "
    "&ldquo;worse&rdquo; need a 95 % interval without zero and an adjusted p below 0.05.</p>"
)
"""How findings are to be read."""


def _sentences(findings: Sequence[tuple[str, str]]) -> str:
    items = (f"<li><b>{escape(subject)}</b>{escape(found)}</li>" for subject, found in findings)
    return f"<ul>{''.join(items)}</ul>"


def _chapter(chapter: Chapter) -> str:
    parts = [f"<h2>{escape(chapter.title)}</h2>"]
    if chapter.findings:
        parts.append(f"<div class='findings'>{_sentences(chapter.findings)}</div>{_READING}")
    parts += [titled(table) for table in chapter.tables]
    parts += [folded(table.title, render_table(table)) for table in chapter.folded]
    return "\n".join(parts)


def _section(results: Results, several: bool) -> str:
    title = results.section.title
    parts = [f"<h2>{escape(f'Task: {title}' if several else 'Evaluation')}</h2>"]
    if results.conditions:
        parts += [f"<p class='note'>Task: {escape(title)}.</p>" if not several else ""]
        parts += [titled(tables.main_table(results))]
    else:
        parts.append(
            "<p>None of these runs has been evaluated yet: <code>prism eval RUN</code>.</p>"
        )
    if claims := results.claims[NOMINAL]:
        table = tables.claims_table(claims, "Differences, nominal condition")
        tested = any(claim.adjusted is not None for claim in claims)
        parts.append(titled(table) if tested else folded(table.title, render_table(table)))
    robust = tables.robustness_tables(results)
    if robust:
        parts.append("<h3>Robustness</h3>")
        parts += [f"{render_table(table, caption=True, note=False)}" for table in robust]
        parts.append(f"<p class='note'>{escape(robust[0].note)}</p>")
    if claims := results.claims["robustness"]:
        table = tables.claims_table(claims, "Differences under other conditions")
        parts.append(folded(table.title, render_table(table)))
    parts.append(_curves(results))
    runs = run_tables.runs_table(results)
    parts.append(folded(runs.title, render_table(runs)))
    return "\n".join(parts)


def _curves(results: Results) -> str:
    colours = _colours([arm for arm in results.section.arms if arm.runs])
    blocks = []
    for axis in AXES:
        drawn = [
            charts.draw_chart(make_curves(results.section, quantity, axis), quantity, axis, colours)
            for quantity in QUANTITIES
        ]
        if any(drawn):
            blocks.append(f"<div class='charts'>{''.join(drawn)}</div>")
    if not blocks:
        return ""
    return (
        f"<h3>Learning curves</h3>{charts.draw_legend(colours)}{''.join(blocks)}"
        "<p class='note'>Mean over the finished training seeds of an arm, as far as all of them "
        "got; the band reaches from the lowest to the highest seed. Dotted: trainings that are not "
        "finished, one line each. Measured while training, with exploration noise and "
        "randomisation. Minutes depend on the machine and on what else it did.</p>"
    )


def _colours(arms: Sequence[Arm]) -> dict[str, str]:
    """Give arms their colours; the first one of a name has the colour of that name."""
    names = [arm.name for arm in arms]
    keys = [arm.label if arm.name in names[:index] else arm.name for index, arm in enumerate(arms)]
    found = arm_colours(keys)
    return {arm.label: found[key] for arm, key in zip(arms, keys, strict=True)}


def _films(films: Sequence[tuple[AnyRun, Attachment]]) -> str:
    if not films:
        return ""
    cards = []
    for run, film in films:
        address = shell.embed(film.data, film.kind)
        made = run.config
        step = re.match(r"\d{8}", Path(film.name).name)
        update = f", update {int(step.group())}" if step else ""
        task = f", {run.config.task.name}" if isinstance(run, ManipulationRun) else ""
        caption = f"{made.arm}, {made.preset}{task}, seed {made.seed}{update}"
        if film.kind.startswith("image/"):
            shown = f'<img alt="{escape(caption)}" src="{address}">'
        else:
            shown = f'<video controls muted loop playsinline src="{address}"></video>'
        cards.append(
            f"<figure>{shown}<figcaption>{escape(caption)}<br><code>{escape(film.name)}</code>"
            "</figcaption></figure>"
        )
    return f"<h2>How they move</h2><div class='cards'>{''.join(cards)}</div>"


def _analysis(analysis: Analysis) -> str:
    about = f" <small>{escape(analysis.source)}</small>" if analysis.source else ""
    figures = "".join(
        f"<figure>{shell.image(one.data, f'{analysis.title}: {one.name}', one.kind)}"
        f"<figcaption><code>{escape(one.name)}</code></figcaption></figure>"
        for one in analysis.figures
    )
    return (
        f"<h2>{escape(analysis.title)}{about}</h2>"
        f"<p class='note'>{escape(analysis.caption)}</p>"
        + (f"<div class='pictures'>{figures}</div>" if figures else "")
        + "".join(_grid(grid) for grid in analysis.tables)
    )


def _grid(grid: Grid) -> str:
    rows = tuple(tuple(Cell(text) for text in row) for row in grid.rows)
    return render_table(Table(grid.title, grid.columns, rows), caption=bool(grid.title))


def _problems(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return f"<h2>Missing or left out</h2><ul class='note'>{items}</ul>"


def _provenance(contents: Contents) -> str:
    parts = [f"<h2>Where the numbers come from</h2><pre>{escape(contents.command)}</pre>"]
    found = [run_tables.provenance_table(results) for results in contents.results]
    for results, table in zip(contents.results, found, strict=True):
        heading = f"<h3>{escape(results.section.title)}</h3>" if len(found) > 1 else ""
        parts.append(heading + render_table(table, note=False))
    note = f"{found[0].note} " if found else ""
    parts.append(f"<p class='note'>{escape(note + contents.made)}</p>")
    return "".join(parts)
