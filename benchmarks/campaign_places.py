"""What a job of a campaign costs on Ray beyond what it costs here: ten jobs each, in turn.

    python benchmarks/campaign_places.py

The job is ``prism --version``, so that hardly anything but the way there and back is measured:
from the runner's order to its notice of the end. Taking turns makes the difference robust to other
work on the machine. Start: connecting to Ray, which is a new cluster unless one runs here, and the
first job, for which a worker imports prism.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from prism_motor.campaigns.locks import note_in
from prism_motor.campaigns.places import JobPlace, choose_place
from prism_motor.campaigns.places.node import Order
from prism_motor.campaigns.work import PRISM

JOBS = 10
POLL = 0.05
COMMAND = (*PRISM, "--version")


def do_job(place: JobPlace, folder: Path) -> float:
    """Run one job to its end and return the seconds that it took."""
    log = folder / "job.log"
    with log.open("a") as file:
        note_in(file, "sent as abc")
        order = Order("job", folder / "run", log, COMMAND, COMMAND, token="abc")
        began = time.perf_counter()
        handle = place.start(order, file)
    while (code := handle.poll()) is None:
        time.sleep(POLL)
    assert code == 0, log.read_text()
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        began = time.perf_counter()
        with choose_place("ray", folder) as ray, choose_place("local", folder) as local:
            connected = time.perf_counter() - began
            first = do_job(ray, folder)
            do_job(local, folder)
            pairs = [(do_job(local, folder), do_job(ray, folder)) for _ in range(JOBS)]
    here, there = (statistics.median(times) for times in zip(*pairs, strict=True))
    apart = sorted(after - before for before, after in pairs)
    print(f"start: connecting {connected:.1f} s, first job {first:.1f} s")
    print(f"{JOBS} jobs, median: local {here:.2f} s, Ray {there:.2f} s")
    print(
        f"a job on Ray takes {statistics.median(apart):+.2f} s more (median of {JOBS} pairs, "
        f"{apart[0]:+.2f} to {apart[-1]:+.2f}; target: < 2 s)"
    )


if __name__ == "__main__":
    main()
