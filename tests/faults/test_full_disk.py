"""A disk that is really full: every command on a small file system, with little space or none.

``test_stops.py`` has the same with made-up errors, at every operation and on every machine.
"""

import os
import shutil
import subprocess

import pytest

from prism_motor.campaigns.files import write_record
from tests.campaigns.conftest import campaign
from tests.faults.results import difference, episodes
from tests.faults.sizes import cases
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG
from tests.faults.tiny import make_small, write_config

pytestmark = pytest.mark.slow

KIND = "full disk"


class Disk:
    """A file system of 16 MB."""

    def __init__(self, place):
        self.place, self.filler = place, place / "filler"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
        self.mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0

    def fill(self, free):
        """Leave this many bytes."""
        found = os.statvfs(self.place)
        size = found.f_bavail * found.f_frsize - free
        with self.filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size))

    def relieve(self):
        """Make room."""
        self.filler.unlink()

    def clear(self):
        """Delete everything."""
        for path in self.place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def close(self):
        if self.mounted:
            subprocess.run(["umount", str(self.place)], check=True)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    made = Disk(tmp_path_factory.mktemp("full") / "disk")
    if not made.mounted:
        pytest.skip("mounting a small file system needs root; test_stops.py has a fake")
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(walking):
    """A small run and its evaluation that nothing happened to, and the command that starts it."""
    config = write_config(walking.folder / "small.json", make_small("locomotion"))
    path = walking.folder / "small"
    words = ("train", "--config", config, "--out")
    assert walking.prism(*words, path).code == 0
    assert walking.prism(*walking.evaluate_words(path)).code == 0
    return path, words


def amounts(size, smoke, full):
    """Return amounts of free space from none to nearly enough."""
    count = cases(smoke, full)
    return [round(size * i / count) for i in range(count)]


def size_of(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def test_a_training_on_a_full_disk_stops_clearly_and_goes_on_exactly(walking, disk, whole, tally):
    path, words = whole
    for free in amounts(size_of(path), 4, 40):
        run = disk.place / "run"
        disk.fill(free)
        cut = walking.prism(*words, run)
        disk.relieve()
        done = walking.prism("train", "--resume", run)
        if done.refused:
            done = walking.prism(*words, run)
        log = f"{free} bytes free\n{cut}\n{done}"
        if cut.crashed or done.crashed:
            tally.note(KIND, TRACEBACK, log)
        elif done.code != 0 or not (cut.refused or cut.code == 0):
            tally.note(KIND, WRONG, log)
        elif cut.refused and "No space left" not in cut.err:
            tally.note(KIND, WRONG, f"it does not say why: {log}")
        else:
            found = without_evaluations(difference(run, path))
            tally.note(KIND, SILENT if found else RIGHT, f"{found}: {log}")
        disk.clear()
    tally.check()


def without_evaluations(found):
    """The whole run has been evaluated, the other one has not."""
    return "" if found.startswith("it holds") else found


def test_an_evaluation_on_a_full_disk_is_completed_by_the_same_command(walking, disk, whole, tally):
    path, _ = whole
    for free in amounts(8192, 2, 10):
        run = disk.place / "run"
        shutil.copytree(path, run)
        shutil.rmtree(run / "evaluations")
        disk.fill(free)
        cut = walking.prism(*walking.evaluate_words(run))
        disk.relieve()
        done = walking.prism(*walking.evaluate_words(run))
        log = f"{free} bytes free\n{cut}\n{done}"
        if cut.crashed or done.crashed:
            tally.note(KIND, TRACEBACK, log)
        elif done.code != 0 or not (cut.refused or cut.code == 0):
            tally.note(KIND, WRONG, log)
        else:
            tally.note(KIND, RIGHT if episodes(run) == episodes(path) else SILENT, log)
        disk.clear()
    tally.check()


@pytest.mark.parametrize("command", ["report", "archive", "export"])
def test_an_output_on_a_full_disk_is_refused_with_one_message(walking, disk, whole, command, tally):
    out = disk.place / {"report": "page.html", "archive": "records", "export": "exported"}[command]
    for free in amounts(16384, 2, 10):
        disk.fill(free)
        cut = walking.prism(command, whole[0], "--out", out)
        disk.relieve()
        done = walking.prism(command, whole[0], "--out", out)
        log = f"{free} bytes free\n{cut}\n{done}"
        clear = done.code == 0 and (cut.refused or cut.code == 0)
        crashed = cut.crashed or done.crashed
        tally.note(KIND, TRACEBACK if crashed else RIGHT if clear else WRONG, log)
        disk.clear()
    tally.check()


def test_a_campaign_on_a_full_disk_goes_on_when_there_is_space(walking, disk, tally):
    for free in amounts(400_000, 1, 10):
        folder = disk.place / "campaign"
        folder.mkdir()
        write_record(campaign(seeds=[1]), folder)
        disk.fill(free)
        cut = walking.prism("campaign", "run", folder, "--jobs", 1)
        disk.relieve()
        done = walking.prism("campaign", "run", folder, "--jobs", 1)
        log = f"{free} bytes free\n{cut}\n{done}"
        clear = done.code == 0 and cut.code in (0, 1, 2)
        crashed = cut.crashed or done.crashed
        tally.note(KIND, TRACEBACK if crashed else RIGHT if clear else WRONG, log)
        disk.clear()
    tally.check()
