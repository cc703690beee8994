"""``prism export``, ``archive``, ``verify`` and ``report``: what is made of run folders."""

from __future__ import annotations

import shlex
from pathlib import Path

from tyro.conf import Positional

from prism_motor._console import count, file_size
from prism_motor._ranges import Step


def export(
    run: Positional[Path],
    out: Path | None = None,
    checkpoint: Step | None = None,
) -> None:
    """Export the policy of a run for use outside of prism.

    A walking or tracking policy becomes ONNX, with its contract, the robot's model and a runner; a
    tracking policy with the latents of its clips and the map to make others. A manipulation policy
    becomes a LeRobot pretrained folder, for --policy.path of its commands.

    Args:
        run: The run folder, or the name of a policy shipped with prism.
        out: Output folder; default: RUN/export, for manipulation RUN/pretrained. An existing export
            is replaced.
        checkpoint: Which checkpoint; default: the newest.
    """
    from prism_motor.domains import open_run
    from prism_motor.runs.shipped import resolve, writable

    _, domain, _ = open_run(run)
    print("\n".join(domain.export(resolve(run) if out else writable(run), out, checkpoint)))


def archive(folder: Positional[Path], out: Path) -> None:
    """Copy what is needed to check results: settings, provenance, curves, episodes, analyses.

    Weights, videos and logs are left out. ``prism report`` works on the copy as on the runs.

    Args:
        folder: A run, a campaign, or any folder of them.
        out: Output folder.
    """
    from prism_motor.runs.records import write_records

    names, left_out = write_records(folder, out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    for note in left_out:
        print(note)
    print(f"{out}: {count(len(names), 'run')}, {file_size(size)}. Next: prism report {out}")


def verify(folder: Positional[Path]) -> None:
    """Check that the files of runs are as they were written, by the hashes stored with them.

    It covers settings, provenance, metrics up to the newest checkpoint, every checkpoint and
    every evaluation. Runs of earlier versions have hashes of their checkpoints only.

    Args:
        folder: A run, the name of a policy shipped with prism, or a folder of runs.
    """
    from prism_motor.runs import RunError
    from prism_motor.runs.layout import walk_runs
    from prism_motor.runs.shipped import resolve
    from prism_motor.runs.verification import verify as verify_run

    root = resolve(folder)
    found = {place: verify_run(place) for place, is_run in walk_runs(root) if is_run}
    if not found:
        raise RunError(f"No runs found in {root}.")
    for place, result in found.items():
        print(f"{place}: {result.word}")
        for title, entries in (("intact", result.intact), ("not sealed", result.unsealed)):
            if entries:
                print(f"  {title}: {', '.join(entries)}")
        for problem in result.problems:
            print(f"  CHANGED: {problem}")
    broken = [str(place) for place, result in found.items() if result.problems]
    if broken:
        raise RunError(
            f"{count(len(broken), 'run')} of {len(found)} not as written: {', '.join(broken)}."
        )


def report(
    folder: Positional[Path],
    out: Path | None = None,
    reference: str | None = None,
    title: str | None = None,
) -> None:
    """Write a page about all runs in a folder: what they show, tables, curves, videos, provenance.

    Its numbers (.json) and tables (.md) are written next to it.

    Args:
        folder: Where to look for run folders, at any depth.
        out: The page; default: FOLDER/report.html.
        reference: Arm that the others are compared with; default: mlp-matched.
        title: Heading of the page; default: the folder's name.
    """
    from prism_motor.report import terminal_table, write_report

    command = ["prism", "report", str(folder)]
    command += ["--out", str(out)] if out else []
    command += ["--reference", reference] if reference else []
    command += ["--title", title] if title else []
    made = write_report(folder, out, reference=reference, title=title, command=shlex.join(command))
    print(made.summary)
    for chapter in made.chapters:
        print(f"\n{chapter.title}")
        if chapter.main:
            print(terminal_table(chapter.main))
        print("\n".join(f"- {subject}{finding}" for subject, finding in chapter.findings))
    if made.problems:
        one = len(made.problems) == 1
        verb, them = ("is missing or was", "it") if one else ("are missing or were", "them")
        print(f"\n{count(len(made.problems), 'thing')} {verb} left out; the page lists {them}.")
    size = file_size(made.page.stat().st_size)
    print(f"\n{made.page}  {size}\n{made.data}\n{made.markdown}")
