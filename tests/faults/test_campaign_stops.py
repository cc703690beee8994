"""Stops at the file operations of a campaign's runner, and of one of its jobs."""

import json
import shutil

import pytest

from prism_motor.campaigns.files import write_record
from tests.campaigns.conftest import campaign, tuned
from tests.faults.results import difference, episodes
from tests.faults.sizes import ALL, spread
from tests.faults.stops import Stop, suits
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG

pytestmark = pytest.mark.slow

CAMPAIGNS = {"plain": lambda: campaign(seeds=[1])}
if ALL:
    CAMPAIGNS["tuned"] = lambda: tuned("locomotion", seeds=[1], arms=[{"name": "mlp"}])


def words(folder):
    return ("campaign", "run", folder, "--jobs", 1)


def fresh(walking, name, made):
    """Make the folder of a campaign that has not begun."""
    folder = walking.folder / name
    folder.mkdir()
    write_record(made, folder)
    return folder


def runs_of(folder):
    """Return the run folders of a campaign, with those of its tuning."""
    files = sorted(folder.rglob("config.json"))
    return {file.parent.relative_to(folder).as_posix(): file.parent for file in files}


@pytest.fixture(scope="module", params=CAMPAIGNS)
def whole(request, walking):
    """A campaign that nothing happened to: how to make it, its folder, its file operations."""
    made = CAMPAIGNS[request.param]()
    folder = fresh(walking, f"whole-{request.param}", made)
    done = walking.prism(*words(folder), stop=Stop(str(folder)))
    assert done.code == 0, done
    return made, folder, done.operations


def different(folder, whole):
    """Return how the results of a campaign differ; empty if they do not."""
    ours, theirs = runs_of(folder), runs_of(whole)
    if ours.keys() != theirs.keys():
        return f"runs {sorted(ours)}, not {sorted(theirs)}"
    for name, run in ours.items():
        if found := difference(run, theirs[name]):
            return f"{name}: {found}"
        if episodes(run) != episodes(theirs[name]):
            return f"{name}: other episodes"
    for file in ("campaign.json", "tuning.json"):
        if (whole / file).exists() and read(folder / file) != read(whole / file):
            return file
    return ""


def read(file):
    return json.loads(file.read_text()) if file.exists() else None


def judge(walking, folder, whole, cut, kind, tally):
    """Run the campaign again after a stop, and compare what it ends with."""
    done = walking.prism(*words(folder))
    log = f"{cut}\n{done}"
    if cut.crashed or done.crashed:
        tally.note(kind, TRACEBACK, log)
    elif done.code != 0:
        tally.note(kind, WRONG, log)
    elif found := different(folder, whole):
        tally.note(kind, SILENT, f"{found}: {log}")
    else:
        tally.note(kind, RIGHT)
    shutil.rmtree(folder)


@pytest.mark.parametrize("way", ["kill", "full"])
def test_a_runner_stopped_anywhere_goes_on(walking, whole, way, tally):
    made, folder, operations = whole
    if made.tuning and way == "full":
        pytest.skip("the campaign without tuning writes to the disk in the same way")
    numbers = [n for n, one in enumerate(operations, 1) if suits(way, one)]
    for number in spread(numbers, 3 if way == "kill" else 1):
        again = fresh(walking, f"{way}-{number}", made)
        cut = walking.prism(*words(again), stop=Stop(str(again), number, way))
        assert cut.code == -9 or way == "full", cut
        judge(walking, again, folder, cut, f"campaign, {way}", tally)
    tally.check()


@pytest.mark.parametrize("job", [1, 2, 3])
def test_a_job_stopped_anywhere_goes_on(walking, whole, job, tally):
    made, folder, _ = whole
    for number in spread([*range(1, 100, 8)], 1):
        again = fresh(walking, f"job-{job}-{number}", made)
        cut = walking.prism(*words(again), stop=Stop(str(again), number), job=job)
        judge(walking, again, folder, cut, "campaign, job killed", tally)
    tally.check()
