"""Signals at random times, one after the other, until the run is done all the same."""

import random
import signal
import time

import pytest

from prism_motor.campaigns.files import write_record
from tests.campaigns.conftest import campaign
from tests.faults.commands import ended, real
from tests.faults.results import difference, leftovers
from tests.faults.sizes import ALL, cases
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG
from tests.faults.test_campaign_stops import different
from tests.faults.tiny import make_small, write_config

pytestmark = pytest.mark.slow

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
UPDATES = 40
SECONDS = 2.0
"""About as long as that many updates take."""


@pytest.fixture(scope="module")
def whole(fork):
    """A run that nothing happened to, and its settings."""
    config = write_config(fork.folder / "storm.json", make_small(fork.domain, updates=UPDATES))
    path = fork.folder / "storm-whole"
    done = fork.prism("train", "--config", config, "--out", path)
    assert done.code == 0, done
    return config, path


def expected(code, number):
    """A signal ends a command in order or, before it listens, at once; or the command was done."""
    return code in (0, 128 + number, -number)


def judge(tally, kind, log, run, whole):
    """Count a run that has come to its end."""
    texts = "\n".join(map(str, log))
    if any(one.crashed for one in log):
        tally.note(kind, TRACEBACK, texts)
    elif log[-1].code != 0 or leftovers(run):
        tally.note(kind, WRONG, f"{leftovers(run)} {texts}")
    else:
        found = difference(run, whole)
        tally.note(kind, SILENT if found else RIGHT, f"{found}: {texts}")


def go_on(call, run, start):
    """Resume, or start where there is nothing to resume."""
    log = [call("train", "--resume", run)]
    if log[-1].refused:
        log.append(call(*start))
    return log


def test_a_training_survives_a_storm(fork, whole, tally):
    config, path = whole
    for number in range(cases(1, 30)):
        chance = random.Random(number)
        run = fork.folder / f"storm-{number}"
        words = start = ("train", "--config", config, "--out", run)
        log = []
        for _ in range(3):
            process = fork.prism.start(*words)
            time.sleep(chance.uniform(0, SECONDS))
            sent = chance.choice(SIGNALS)
            process.kill(sent)
            log.append(process.wait())
            assert expected(log[-1].code, sent) or log[-1].refused, log[-1]
            words = start if log[-1].refused else ("train", "--resume", run)
        log += go_on(fork.prism, run, start)
        judge(tally, f"storms, {fork.domain}", log, run, path)
    tally.check()


@pytest.mark.skipif(not ALL, reason="starts many processes: make faults")
@pytest.mark.parametrize("processes", [1, 2])
def test_real_processes_survive_a_storm(tmp_path, processes, tally):
    config = write_config(tmp_path / "storm.json", make_small("locomotion", updates=UPDATES))
    more = ("--processes", processes)
    start = ("train", "--config", config, *more, "--out")

    def call(*words):
        return ended(real(*words, cwd=tmp_path), words)

    assert call(*start, tmp_path / "whole").code == 0
    for number in range(6):
        chance = random.Random(100 * processes + number)
        run = tmp_path / f"run-{number}"
        words = (*start, run)
        log = []
        for _ in range(2):
            process = real(*words, cwd=tmp_path)
            time.sleep(chance.uniform(2, 10))
            sent = chance.choice(SIGNALS)
            process.send_signal(sent)
            log.append(ended(process, words))
            assert expected(log[-1].code, sent) or log[-1].refused, log[-1]
            words = (*start, run) if log[-1].refused else ("train", "--resume", run, *more)
        log.append(call("train", "--resume", run, *more))
        if log[-1].refused:
            log.append(call(*start, run))
        judge(tally, f"storms, {processes} real processes", log, run, tmp_path / "whole")
    tally.check()


@pytest.mark.skipif(not ALL, reason="takes minutes: make faults")
def test_a_campaign_survives_a_storm(walking, tally):
    folders = []
    for number in range(13):
        folder = walking.folder / f"campaign-{number}"
        folder.mkdir()
        write_record(campaign(seeds=[1]), folder)
        folders.append(folder)
    whole, *others = folders
    words = ("campaign", "run")
    assert walking.prism(*words, whole, "--jobs", 2).code == 0
    for number, folder in enumerate(others):
        chance = random.Random(number)
        log = []
        for _ in range(3):
            process = walking.prism.start(*words, folder, "--jobs", 2)
            time.sleep(chance.uniform(0, 3))
            sent = chance.choice(SIGNALS)
            process.kill(sent)
            log.append(process.wait())
            assert expected(log[-1].code, sent) or log[-1].code == 130, log[-1]
        log.append(walking.prism(*words, folder, "--jobs", 2))
        texts = "\n".join(map(str, log))
        if any(one.crashed for one in log):
            tally.note("storms, campaign", TRACEBACK, texts)
        elif log[-1].code != 0:
            tally.note("storms, campaign", WRONG, texts)
        else:
            found = different(folder, whole)
            tally.note("storms, campaign", SILENT if found else RIGHT, f"{found}: {texts}")
    tally.check()
