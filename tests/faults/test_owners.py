"""Two at once on the same folder: one owns it, the other is told who."""

import signal
import time

import pytest

from prism_motor.campaigns.files import write_record
from tests.campaigns.conftest import campaign
from tests.faults.results import difference, episodes
from tests.faults.sizes import cases
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG
from tests.faults.tiny import make_small, write_config
from tests.train.cases import assert_same_run

pytestmark = pytest.mark.slow

KIND = "two owners"


@pytest.fixture
def live(walking, tmp_path):
    """A run that is being trained, and would be for long."""
    config = write_config(tmp_path / "long.json", make_small("locomotion", updates=100_000))
    run = tmp_path / "run"
    process = walking.prism.start("train", "--config", config, "--out", run)
    wait_for(lambda: rows_of(run) >= 3)
    yield config, run, process
    process.end()


def rows_of(run):
    file = run / "metrics.jsonl"
    return file.read_text().count("\n") if file.exists() else 0


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_a_live_run_is_nobody_elses(walking, live, tally):
    config, run, process = live
    for words in (("--resume", run), ("--config", config, "--out", run)):
        second = walking.prism("train", *words)
        named = second.refused and str(process.pid) in second.err
        outcome = TRACEBACK if second.crashed else RIGHT if named else WRONG
        tally.note(KIND, outcome, second)
    # Reading is for everybody.
    for words in (walking.evaluate_words(run), ("report", run), ("verify", run)):
        second = walking.prism(*words)
        outcome = TRACEBACK if second.crashed else RIGHT if second.code == 0 else WRONG
        tally.note(KIND, outcome, second)
    # The first is unharmed: it goes on, and all its rows are where they belong.
    before = rows_of(run)
    wait_for(lambda: rows_of(run) > before)
    process.kill(signal.SIGTERM)
    first = process.wait()
    assert first.code == 128 + signal.SIGTERM, first
    done = rows_of(run)
    again = walking.prism("train", "--resume", run, "--updates", done + 3)
    assert again.code == 0, again
    whole = run.with_name("whole")
    words = ("train", "--config", config, "--updates", done + 3, "--out", whole)
    assert walking.prism(*words).code == 0
    assert_same_run(run, whole)
    tally.check()


def test_kill_9_frees_the_run_at_once(walking, live):
    _, run, process = live
    process.kill(signal.SIGKILL)
    process.wait()
    again = walking.prism("train", "--resume", run, "--updates", rows_of(run) + 3)
    assert again.code == 0, again


def both(walking, words):
    """Do the same thing twice at the same time."""
    started = [walking.prism.start(*words) for _ in range(2)]
    return [one.wait() for one in started]


def judge(tally, ended, found):
    """Each of the two is done or refused, one of them is done, and the result is right."""
    log = "\n".join(map(str, ended))
    if any(one.crashed for one in ended):
        tally.note(KIND, TRACEBACK, log)
    elif any(one.code != 0 and not one.refused for one in ended) or all(e.code for e in ended):
        tally.note(KIND, WRONG, log)
    else:
        tally.note(KIND, SILENT if found() else RIGHT, f"{found()}: {log}")


def test_two_starts_and_two_resumes_at_once_make_one_run(walking, tmp_path, tally):
    whole = tmp_path / "whole"
    assert walking.prism(*walking.start_words(whole)).code == 0
    for number in range(cases(2, 20)):
        run = tmp_path / f"run-{number}"
        judge(
            tally, both(walking, walking.start_words(run)), lambda run=run: difference(run, whole)
        )
        half = tmp_path / f"half-{number}"
        words = ("train", "--config", walking.config, "--out", half)
        process = walking.prism.start(*words)
        wait_for(lambda half=half, rows=1 + number % 5: rows_of(half) >= rows)
        process.kill(signal.SIGKILL)
        process.wait()
        ended = both(walking, ("train", "--resume", half))
        judge(tally, ended, lambda half=half: difference(half, whole))
    tally.check()


def test_two_evaluations_at_once_lose_no_episode(walking, tmp_path, tally):
    whole = tmp_path / "whole"
    assert walking.prism(*walking.start_words(whole)).code == 0
    assert walking.prism(*walking.evaluate_words(whole)).code == 0
    for number in range(cases(2, 20)):
        run = tmp_path / f"run-{number}"
        assert walking.prism(*walking.start_words(run)).code == 0
        ended = both(walking, walking.evaluate_words(run))
        if all(one.refused for one in ended):  # each had what the other one wanted
            ended.append(walking.prism(*walking.evaluate_words(run)))
        judge(tally, ended, lambda run=run: episodes(run) != episodes(whole))
    tally.check()


def test_a_campaign_has_one_runner(walking, tmp_path, tally):
    folder = tmp_path / "campaign"
    folder.mkdir()
    write_record(campaign(seeds=[1]), folder)
    words = ("campaign", "run", folder, "--jobs", 1)
    first = walking.prism.start(*words)
    wait_for(lambda: (folder / "logs").exists())
    second = walking.prism(*words)
    named = second.refused and str(first.pid) in second.err
    tally.note(KIND, TRACEBACK if second.crashed else RIGHT if named else WRONG, second)
    done = first.wait()
    assert done.code == 0, done
    assert "2 of 2 runs done" in done.out
    tally.check()
