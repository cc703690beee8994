"""From a folder of runs to a page, its numbers as JSON and its tables as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prism_motor._errors import InputError
from prism_motor.report.arms import REFERENCE, make_sections
from prism_motor.report.attachments import Luggage, find_analyses, find_films
from prism_motor.report.cells import Chapter
from prism_motor.report.export import make_json, make_markdown
from prism_motor.report.manipulation import collect_manipulation, manipulation_data
from prism_motor.report.manipulation_tables import manipulation_chapters
from prism_motor.report.page import Contents, render
from prism_motor.report.reading import collect
from prism_motor.report.records import Collection
from prism_motor.report.results import Results, compute
from prism_motor.report.sweeps import sweep_tables
from prism_motor.runs import RunError, collect_provenance
from prism_motor.runs.atomic import write_json, write_text


@dataclass(frozen=True)
class Report:
    """What was written, and what it says."""

    page: Path
    """The page; the others stand beside it."""
    data: Path
    """All numbers as JSON."""
    markdown: Path
    """All tables as Markdown."""
    results: tuple[Results, ...]
    """One a task."""
    manipulation: tuple[Chapter, ...]
    """Runs that learned from demonstrations, one a task."""
    problems: tuple[str, ...]
    """What is missing or was left out."""


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    reference: str = REFERENCE,
    title: str | None = None,
    intro: str = "",
    command: str | None = None,
) -> Report:
    """Write the report of all runs at or under a folder.

    Args:
        folder: Where to look for run folders.
        out: The page, an .html file; default: report.html in ``folder``.
        reference: Name of the arm that others are compared with.
        title: Heading; default: the folder's name.
        intro: A paragraph before the numbers.
        command: What the page says makes it again.
    """
    page = Path(folder) / "report.html" if out is None else Path(out)
    if page.suffix not in (".html", ".htm"):
        raise InputError(f"The page must be an .html file, got {page}.")
    collection = collect(folder)
    learned, notes = collect_manipulation(collection.root)
    if not collection.runs and not learned:
        raise RunError(_nothing(collection))
    results = tuple(compute(section, reference) for section in make_sections(collection))
    luggage = Luggage(collection.root)
    walkers = [run for one in results for run in one.section.runs]
    films = find_films([*walkers, *learned], luggage)
    analyses = find_analyses(collection.root, [*collection.runs, *learned], luggage)
    problems = (
        *collection.problems,
        *(note for one in results for note in one.section.notes),
        *luggage.notes,
        *notes,
    )
    chapters = tuple(manipulation_chapters(learned, reference))
    heading = title or collection.root.resolve().name
    made = collect_provenance()
    contents = Contents(
        title=heading,
        intro=intro,
        results=results,
        manipulation=chapters,
        films=films,
        analyses=analyses,
        sweeps=sweep_tables(collection.plans),
        problems=problems,
        command=command or f"prism report {folder}",
        made=f"Page made {made['created'][:16].replace('T', ' ')} UTC by prism {made['prism']}"
        + (f" ({made['commit'][:8]})." if made["commit"] else "."),
    )
    data, markdown = page.with_suffix(".json"), page.with_suffix(".md")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        numbers = make_json(results, problems, made)
        write_json(data, numbers | {"manipulation": manipulation_data(learned)})
        write_text(markdown, make_markdown(heading, results, problems, chapters))
        write_text(page, render(contents))
    except OSError as error:
        raise RunError(f"Cannot write to {page.parent}: {error.strerror or error}.") from error
    return Report(page, data, markdown, results, chapters, problems)


def _nothing(collection: Collection) -> str:
    text = f"There is no training run that can be reported in {collection.root} or below."
    if collection.problems:
        return text + "".join(f"\n  {problem}" for problem in collection.problems)
    return (
        f"{text} A run folder has a config.json; prism train locomotion --out "
        f"{collection.root}/NAME makes one."
    )
