"""``prism traces``: several policies on the same commands, step by step."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional


def traces(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    script: Path | None = None,
    seconds: float = 20.0,
    detail: tuple[float, float] = (4.0, 6.0),
    condition: str = "nominal",
    envs: int = 16,
    seed: int = 301,
    checkpoint: int | None = None,
    threads: int = 1,
) -> None:
    """Trace commands, velocities, power, slip, impulse and contact power of several policies.

    All follow the same commands from the same initial states, with friction and masses of the
    first run's task. Writes traces.json, tracking.png and mechanics.png.

    Args:
        runs: Run folders, of any number of arms and training seeds.
        out: Where to write; default: FIRST RUN/analysis/traces.
        script: Text file with a line of time (s), forward, sideways (m/s) and yaw rate (rad/s) for
            every new command; default: stand, walk, turn, side-step, walk back, stand.
        seconds: When the script ends.
        detail: From when to when the mechanics are drawn, s.
        condition: One of nominal, low-friction, payload, pushes, training.
        envs: Robots of every policy.
        seed: Seed of the initial states.
        checkpoint: Which checkpoint; default: the newest.
        threads: Simulation threads.
    """
    from textwrap import fill

    from prism_motor._progress import Progress
    from prism_motor.analysis.style import check_matplotlib
    from prism_motor.analysis.subjects import load_subjects, same_robot
    from prism_motor.analysis.text import align
    from prism_motor.analysis.traces import TraceConfig, count_steps, make_script, record_traces
    from prism_motor.analysis.traces_files import Detail, make_caption, make_table, write_traces
    from prism_motor.cli._shipped import writable

    check_matplotlib("prism traces")
    config = TraceConfig(make_script(script, seconds), condition, envs, seed, threads)
    shown = Detail(*detail)
    shown.check(seconds)
    subjects, left_out = load_subjects(runs, checkpoint)
    subjects, differing = same_robot(subjects)
    left_out += differing
    for line in left_out:
        print(line)
    folder = out or writable(runs[0]) / "analysis" / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    with Progress("Traces", count_steps(subjects, config)) as progress:
        found = record_traces(subjects, config, progress.step)
    files = write_traces(found, config, shown, left_out, folder)
    content = make_table(found)
    print("\n" + align([content["columns"], *content["rows"]], numbers=1))
    print("\n" + fill(make_caption(found, config), 100))
    print("\n" + "\n".join(map(str, files)))
