"""Stops at every file operation of a training and of an evaluation, and what comes after."""

import shutil
from pathlib import Path

import pytest

from tests.faults.results import difference, episodes, leftovers
from tests.faults.sizes import spread
from tests.faults.stops import WAYS, Stop, suits
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG

pytestmark = pytest.mark.slow

SAMPLE = {"kill": 6, "torn": 2, "power": 3, "full": 2}
"""Stops of a training per domain in the sample; half as many of an evaluation."""


@pytest.fixture(scope="module")
def whole(fork):
    """A run that nothing happened to, and its file operations."""
    path = fork.folder / "whole"
    done = fork.prism(*fork.start_words(path), stop=Stop(str(path)))
    assert done.code == 0, done
    assert len(done.operations) > 50
    return path, done.operations


def numbers(operations, way):
    """Return the operations that can be stopped in this way."""
    return [number for number, one in enumerate(operations, 1) if suits(way, one)]


def stopped(ended, way):
    """Return whether a command ended as the stop demands: killed, or with one message."""
    return ended.refused if way == "full" else ended.code == -9


def go_on(fork, run, first):
    """Do what a user does after a stop: resume, or the same command again; one of them works."""
    steps = [("train", "--resume", run), fork.start_words(run)]
    if first == "start":
        steps.reverse()
    tried = [fork.prism(*steps[0])]
    if tried[0].refused:
        tried.append(fork.prism(*steps[1]))
    return tried


def verify(fork, run, tally):
    """Check that a run which went on has the hashes of one that nothing happened to."""
    found = fork.prism("verify", run)
    outcome = RIGHT if found.code == 0 else TRACEBACK if found.crashed else WRONG
    tally.note("verify after stops", outcome, found)


@pytest.fixture(autouse=True)
def _sees_descriptors(request):
    # Which file an fsync is about can only be told where the system lists open files.
    if "power" in request.node.name.split("-") and not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")


@pytest.mark.parametrize("way", WAYS)
def test_a_training_stopped_anywhere_goes_on_exactly(fork, whole, way, tally):
    path, operations = whole
    kind = f"training, {way}"
    for number in spread(numbers(operations, way), SAMPLE[way]):
        run = fork.folder / f"{way}-{number}"
        where = f"{fork.domain}, operation {number} ({operations[number - 1]})"
        cut = fork.prism(*fork.start_words(run), stop=Stop(str(run), number, way))
        tried = go_on(fork, run, ("resume", "start")[number % 2])
        log = f"{where}\n{cut}\n" + "\n".join(map(str, tried))
        if cut.crashed or any(one.crashed for one in tried):
            tally.note(kind, TRACEBACK, log)
        elif tried[-1].code != 0:
            tally.note(kind, WRONG, f"no next step: {log}")
        elif not stopped(cut, way) and not (way == "full" and cut.code == 0):
            tally.note(kind, WRONG, f"it did not stop: {log}")
        elif found := difference(run, path):
            told = "metrics" in tried[-1].err and not weights_differ(found)
            tally.note(kind, RIGHT if told else SILENT, f"{found}: {log}")
        elif left := leftovers(run):
            tally.note(kind, WRONG, f"leftovers {left}: {log}")
        else:
            tally.note(kind, RIGHT)
            verify(fork, run, tally)
        shutil.rmtree(run)
    tally.check()


def weights_differ(found):
    """Return whether more than rows of metrics differ."""
    return "'update'" not in found


@pytest.mark.parametrize("way", WAYS)
def test_an_evaluation_stopped_anywhere_is_completed_by_the_same_command(fork, whole, way, tally):
    path, _ = whole
    kind = f"evaluation, {way}"
    one = fork.folder / f"evaluated-{way}"
    shutil.copytree(path, one)
    done = fork.prism(*fork.evaluate_words(one), stop=Stop(str(one)))
    assert done.code == 0, done
    wanted = episodes(one)
    assert len(wanted) == len(fork.case.conditions)
    for number in spread(numbers(done.operations, way), SAMPLE[way] // 2):
        run = fork.folder / f"evaluation-{way}-{number}"
        shutil.copytree(path, run)
        where = f"{fork.domain}, operation {number} ({done.operations[number - 1]})"
        cut = fork.prism(*fork.evaluate_words(run), stop=Stop(str(run), number, way))
        again = fork.prism(*fork.evaluate_words(run))
        log = f"{where}\n{cut}\n{again}"
        if cut.crashed or again.crashed:
            tally.note(kind, TRACEBACK, log)
        elif again.code != 0 or not stopped(cut, way):
            tally.note(kind, WRONG, log)
        elif episodes(run) != wanted:
            tally.note(kind, SILENT, log)
        else:
            tally.note(kind, RIGHT)
            verify(fork, run, tally)
        shutil.rmtree(run)
    tally.check()


OUTPUTS = {
    "report": ("--out", "page.html"),
    "archive": ("--out", "records"),
    "export": ("--out", "exported"),
}
"""Commands that make something of a run, and where."""


@pytest.fixture(scope="module")
def evaluated(walking):
    """A finished and evaluated walking run."""
    path = walking.folder / "evaluated"
    assert walking.prism(*walking.start_words(path)).code == 0
    assert walking.prism(*walking.evaluate_words(path)).code == 0
    return path


@pytest.mark.parametrize("way", ["kill", "full"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_stopped_anywhere_is_made_by_the_same_command(
    walking, evaluated, command, way, tally
):
    kind = f"{command}, {way}"

    def make(name, number=0):
        folder = walking.folder / f"{command}-{way}-{name}"
        folder.mkdir(exist_ok=True)
        stop = Stop(str(folder), number, way)
        words = (command, evaluated, *OUTPUTS[command])
        return folder, walking.prism(*words, stop=stop, cwd=folder)

    whole, done = make("whole")
    assert done.code == 0, done
    for number in spread(numbers(done.operations, way), 1 if command == "export" else 2):
        folder, cut = make(number, number)
        _, again = make(number)
        log = f"operation {number} ({done.operations[number - 1]})\n{cut}\n{again}"
        if cut.crashed or again.crashed:
            tally.note(kind, TRACEBACK, log)
        elif again.code != 0 or not stopped(cut, way):
            tally.note(kind, WRONG, log)
        else:
            same = names(folder) == names(whole)
            tally.note(kind, RIGHT if same else SILENT, f"{names(folder)}\n{log}")
        shutil.rmtree(folder)
    tally.check()


def names(folder):
    """Return all files below a folder, but for temporary ones."""
    found = [p.relative_to(folder) for p in folder.rglob("*") if p.is_file()]
    return sorted(str(p) for p in found if not any(part.endswith(".tmp") for part in p.parts))
