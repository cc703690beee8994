"""Studies: a study is a config and a function that returns a finding; the rest is done here.

``prism probe``, ``prism explain`` and the others are entries of :data:`STUDIES`. For each of them
:func:`run_study` loads the policies, says which runs were left out and why, shows progress, writes
``RUN/analysis/<name>/<name>.json`` with figures beside it, and prints the tables. Add your own
study with :func:`register_study`; it becomes a command like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism_motor._checks import InputError, check_choice, check_name
from prism_motor._console import Progress, text_table
from prism_motor._devices import Device
from prism_motor._figures import STYLE, check_matplotlib, save_png
from prism_motor._ranges import Checked
from prism_motor._registry import resolve
from prism_motor.domains import open_run
from prism_motor.runs import RunError, collect_provenance, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.runs.layout import ANALYSIS
from prism_motor.runs.shipped import writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1
"""Version of the JSON files; raised when their meaning changes."""

_WIDTH = 100
"""Columns of text in a terminal."""

Report = Callable[..., None]
"""Called after every finished unit of work, optionally with a note about it."""


def silent(*_: object) -> None:
    """Report nothing."""


S = TypeVar("S")
C = TypeVar("C")


@dataclass(frozen=True)
class StudyConfig(Checked):
    """What the settings of our own studies have in common; yours need not."""

    device: Device | None = field(default=None, kw_only=True)
    """Torch device of the policies; default: that of their training, or the CPU where it is
    missing."""


@dataclass(frozen=True)
class ResultTable:
    """A table of text."""

    columns: Sequence[str]
    """Titles of the columns."""
    rows: Sequence[Sequence[str]]
    """Cells, as many per row as there are columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Finding:
    """What a study found."""

    title: str
    """What it is about, in a few words."""
    caption: str
    """What the numbers mean, and what they do not show."""
    tables: Mapping[str, ResultTable]
    """Tables by name; the main one is called ``""``. Reports show them."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Everything else for the JSON file."""
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    """What draws each figure, by the name of its file."""
    notes: Sequence[str] = ()
    """Further sentences for the terminal."""
    left_out: Sequence[str] = ()
    """A sentence per policy that turned out to be unsuitable while the study ran."""
    screen: Mapping[str, ResultTable] | None = None
    """Tables for the terminal if those of the file are too wide for it."""


@dataclass(frozen=True)
class Study(Generic[S, C]):
    """How trained policies of one domain are analysed."""

    name: str
    """Name of the command, of the folder and of the JSON file."""
    domain: str
    """Name of the domain whose runs it studies; studies of the same name differ in it."""
    help: str
    """What it does: one line, an empty line, and a paragraph."""
    config: type[C]
    """Frozen dataclass of the settings: its fields are the flags, their docstrings the help."""
    run: Callable[[S, C, Report], Finding]
    """Does the work, and reports after every unit of it."""
    load: Callable[[Sequence[Path], int | None, C], tuple[S, list[str]]] | None = None
    """From run folders, checkpoint and settings to what is studied, with a sentence about each run
    left out. Default: a list of all subjects of the domain that can be loaded."""
    count: Callable[[S, C], int] | None = None
    """How often the work reports. Default: once per subject."""
    single: bool = False
    """Whether it studies one run at a time."""


@dataclass(frozen=True)
class StudyCommand:
    """Studies that share a command, one per domain."""

    summary: str
    """One line for the list of commands."""
    studies: tuple[str | Study[Any, Any], ...]
    """The studies; ``module:NAME`` is imported when the command is used."""


_ROOM = "prism_motor.analysis"

STUDIES: dict[str, StudyCommand] = {
    "explain": StudyCommand(
        "Show which products of inputs a policy learned and what happens without them.",
        (f"{_ROOM}.explain.study:EXPLAIN", f"{_ROOM}.tracking.explain:EXPLAIN_TRACKING"),
    ),
    "traces": StudyCommand(
        "Trace commands, velocities, power, slip, impulse and contact power of several policies.",
        (f"{_ROOM}.traces:TRACES",),
    ),
    "embed": StudyCommand(
        "Embed features under different dynamics and measure how well these can be separated.",
        (f"{_ROOM}.embed:EMBED", f"{_ROOM}.tracking.embed:EMBED_TRACKING"),
    ),
    "probe": StudyCommand(
        "Probe frozen features for the mechanics of the next control steps.",
        (f"{_ROOM}.probe.walking:WALKING_PROBE", f"{_ROOM}.probe.contact:CONTACT_PROBE"),
    ),
    "contact": StudyCommand(
        "Compare what policies do when they touch something: force, speed, impulse, work, power.",
        (f"{_ROOM}.contact:CONTACT",),
    ),
    "compliance": StudyCommand(
        "Try settings of a compliance baseline around trained policies and choose the best.",
        (f"{_ROOM}.compliance:COMPLIANCE",),
    ),
}
"""Studies by the name of their command."""


def register_study(study: Study[Any, Any]) -> None:
    """Make a study a command; call this from a module named by ``--plugin``.

    Args:
        study: The study. It may share the name of a study of another domain.
    """
    check_name("study", study.name)
    present = find_studies(study.name) if study.name in STUDIES else ()
    if study in present:
        return
    if study.domain in [other.domain for other in present]:
        raise InputError(
            f"There is already a study {study.name!r} of {study.domain} runs: choose another name."
        )
    summary = present[0].help if present else study.help
    STUDIES[study.name] = StudyCommand(summary.split("\n")[0], (*present, study))


def find_studies(name: str) -> tuple[Study[Any, Any], ...]:
    """Return the studies of a command, imported."""
    entries = STUDIES[check_choice("study", name, STUDIES)].studies
    return tuple(entry if isinstance(entry, Study) else resolve(entry) for entry in entries)


def choose_study(name: str, runs: Sequence[str | Path]) -> Study[Any, Any]:
    """Return the study of a command that fits the domain of the first run.

    Args:
        name: Name of the command.
        runs: Run folders. It is up to the study to reject what cannot be opened.
    """
    studies = find_studies(name)
    if len(studies) == 1:  # its loader reports runs of other domains
        return studies[0]
    try:
        domain = open_run(runs[0])[1].name if runs else studies[0].domain
    except RunError:
        return studies[0]
    for study in studies:
        if study.domain == domain:
            return study
    known = " or ".join(study.domain for study in studies)
    raise InputError(f"{runs[0]} is a {domain} run, but prism {name} studies {known} runs.")


def run_study(
    study: Study[S, C],
    runs: Sequence[Path],
    config: C,
    *,
    out: Path | None = None,
    checkpoint: int | None = None,
) -> list[Path]:
    """Load, study, write and print; return the files that were written.

    Args:
        study: The study.
        runs: Run folders, or names of shipped policies.
        config: Its settings.
        out: Where to write; default: ``analysis/<name>`` of the first run.
        checkpoint: Which checkpoint; default: the newest.
    """
    check_matplotlib(f"prism {study.name}")
    if study.single and len(runs) != 1:
        raise InputError(f"prism {study.name} studies one run at a time, got {len(runs)}.")
    # Reject what cannot be studied before a folder is made and hours of work are spent.
    subjects, left_out = _load(study, runs, checkpoint, config)
    for line in left_out:
        print(line)
    folder = out or writable(runs[0]) / ANALYSIS / study.name
    folder.mkdir(parents=True, exist_ok=True)
    total = study.count(subjects, config) if study.count else len(subjects)  # type: ignore[arg-type]
    with Progress(study.name.capitalize(), total) as progress:
        finding = study.run(subjects, config, progress.step)
    for line in finding.left_out:
        print(line)
    files = write_finding(study.name, finding, config, left_out, folder)
    print("\n" + describe(finding) + "\n\n" + "\n".join(map(str, files)))
    return files


def _load(
    study: Study[S, C], runs: Sequence[Path], checkpoint: int | None, config: C
) -> tuple[S, list[str]]:
    if study.load is not None:
        return study.load(runs, checkpoint, config)
    from prism_motor.analysis.subjects import load_subjects

    device = getattr(config, "device", None)
    return load_subjects(runs, checkpoint, domain=study.domain, device=device)  # type: ignore[return-value]


def write_finding(
    name: str, finding: Finding, config: Any, left_out: Sequence[str], folder: Path
) -> list[Path]:
    """Write ``<name>.json`` and the figures; return their paths.

    Args:
        name: Name of the study.
        finding: What it found.
        config: Its settings.
        left_out: A sentence about every run that was left out.
        folder: Where to, a folder that exists.
    """
    from matplotlib import rc_context

    tables = {f"{key}_table" if key else "table": t.to_dict() for key, t in finding.tables.items()}
    settings = to_dict(config)
    file = folder / f"{name}.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": finding.title,
            "caption": finding.caption,
            **tables,
            "config": {k: str(v) if isinstance(v, Path) else v for k, v in settings.items()},
            **finding.data,
            "left_out": [*left_out, *finding.left_out],
            "provenance": collect_provenance(),
        },
    )
    with rc_context(STYLE):
        drawn = [save_png(draw(), folder / f"{key}.png") for key, draw in finding.figures.items()]
    return [file, *drawn]


def describe(finding: Finding) -> str:
    """Return a finding as text for a terminal."""
    tables = finding.tables if finding.screen is None else finding.screen
    parts = [finding.title]
    for name, table in tables.items():
        if table.rows:
            parts += [name[:1].upper() + name[1:].replace("_", " ")] if name else []
            parts.append(text_table([table.columns, *table.rows]))
    parts += [fill(text, _WIDTH) for text in (finding.caption, *finding.notes)]
    return "\n\n".join(parts)
