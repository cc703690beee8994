"""``prism export`` and ``prism archive``: what comes of run folders."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from prism_motor._console import count


def export(
    run: Positional[Path],
    out: Path | None = None,
    checkpoint: int | None = None,
) -> None:
    """Write the policy of a run as files that others can use.

    A walking policy becomes ONNX, with its contract, the robot's model and a runner. A handling
    policy becomes a pretrained folder of LeRobot, for --policy.path of its commands.

    Args:
        run: The run folder, or the name of a policy that comes with prism.
        out: Folder to write; default: RUN/export, for handling RUN/pretrained. An export that is
            there is replaced.
        checkpoint: Which checkpoint; default: the newest.
    """
    from prism_motor.domains import open_run
    from prism_motor.runs.shipped import resolve, writable

    _, domain, _ = open_run(run)
    print("\n".join(domain.export(resolve(run) if out else writable(run), out, checkpoint)))


def archive(folder: Positional[Path], out: Path) -> None:
    """Copy what checks a result: settings, provenance, curves, every evaluated episode, analyses.

    Weights, videos and logs stay behind. ``prism report`` works on the copy as on the runs.

    Args:
        folder: A run, a campaign, or any folder of them.
        out: Folder of the records.
    """
    from prism_motor.runs.records import write_records

    names = write_records(folder, out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {count(len(names), 'run')}, {size / 1e6:.1f} MB. Next: prism report {out}")
