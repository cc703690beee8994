"""What a job of a campaign costs on Ray beyond what it costs here: ten jobs each, in turn.

    python benchmarks/campaign_places.py [--train]

The job is ``prism --version``, so that hardly anything but the way there and back is measured, or
with ``--train`` a training of a few updates: from the runner's order to its notice of the end.
Taking turns makes the difference robust to other work on the machine. Start: connecting to Ray,
which is a new cluster unless one runs here, and the first job, for which a worker imports prism.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from prism_motor.campaigns.locks import note_in
from prism_motor.campaigns.places import JobPlace, choose_place
from prism_motor.campaigns.places.node import Order
from prism_motor.campaigns.work import PRISM

JOBS = 10
NUMBERS = itertools.count()
POLL = 0.05
NOTHING = ("--version",)
TRAINING = (
    "train", "locomotion", "--envs", "16", "--threads", "1", "--updates", "20", "--ppo.steps", "8",
    "--ppo.epochs", "1", "--ppo.minibatches", "2",
)  # fmt: skip


def do_job(place: JobPlace, folder: Path, words: Sequence[str]) -> float:
    """Run one job to its end and return the seconds that it took."""
    log, run = folder / "job.log", folder / f"run-{next(NUMBERS)}"
    command = (*PRISM, *words, *(("--out", str(run)) if words is TRAINING else ()))
    with log.open("a") as file:
        note_in(file, "sent as abc")
        order = Order("job", run, log, command, command, token="abc")
        began = time.perf_counter()
        handle = place.start(order, file)
    while (code := handle.poll()) is None:
        time.sleep(POLL)
    assert code == 0, log.read_text()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--train", action="store_true", help="jobs train for 20 small updates")
    words = TRAINING if parser.parse_args().train else NOTHING
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        began = time.perf_counter()
        with choose_place("ray", folder) as ray, choose_place("local", folder) as local:
            connected = time.perf_counter() - began
            first = do_job(ray, folder, words)
            do_job(local, folder, words)
            pairs = [
                (do_job(local, folder, words), do_job(ray, folder, words)) for _ in range(JOBS)
            ]
    here, there = (statistics.median(times) for times in zip(*pairs, strict=True))
    apart = sorted(after - before for before, after in pairs)
    print(f"start: connecting {connected:.1f} s, first job {first:.1f} s")
    ratio = statistics.median(after / before for before, after in pairs)
    print(f"{JOBS} jobs, median: local {here:.2f} s, Ray {there:.2f} s, median ratio {ratio:.2f}")
    print(
        f"a job on Ray takes {statistics.median(apart):+.2f} s more (median of {JOBS} pairs, "
        f"{apart[0]:+.2f} to {apart[-1]:+.2f}; target: < 2 s)"
    )


if __name__ == "__main__":
    main()
