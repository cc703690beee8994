"""Slurm's place, with the executor of submitit that needs no Slurm."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from prism_motor._checks import InputError
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.files import write_record
from prism_motor.campaigns.locks import is_locked
from prism_motor.campaigns.places.node import Order
from prism_motor.campaigns.runner import Runner
from prism_motor.runs import Run

from .conftest import assert_same_weights, campaign, have_begun, plan, train, wait_for

pytest.importorskip("submitit", reason="submitit is not installed")

from prism_motor.campaigns.places.slurm import SlurmPlace

LONG = 200
"""Updates that take long enough to be interrupted."""


def test_a_machine_without_slurm_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"--on slurm cannot be used here: .*srun"):
        SlurmPlace(tmp_path)


def test_what_slurm_refuses_is_one_message(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "srun": "true",
        "sbatch": "echo invalid partition: gpux >&2; exit 1",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    place = SlurmPlace(tmp_path / "campaign", parameters={"partition": "gpux"})
    log = tmp_path / "job.log"
    words = (sys.executable, "-c", "pass")
    with log.open("w") as file, pytest.raises(CampaignError, match=r"invalid partition: gpux"):
        place.start(Order("job", tmp_path / "run", log, words, words), file)


@pytest.mark.slow
def test_a_preempted_job_is_requeued_and_ends_with_the_same_weights(tmp_path):
    arms = [{"name": "mlp"}]
    overrides = {**campaign().overrides, "checkpoint_every": 1000}
    changes = {"updates": LONG, "seeds": [1], "arms": arms, "overrides": overrides}
    made = campaign(**changes)
    (run,) = plan(tmp_path / "cut", **changes)
    place = SlurmPlace(tmp_path / "cut", cluster="local")
    jobs = []
    submit = place.executor.submit
    place.executor.submit = lambda task: jobs.append(submit(task)) or jobs[-1]
    runner = Runner(made, tmp_path / "cut", jobs=1, place=place, poll=0.1)
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(runner.run()))
    thread.start()
    wait_for(lambda: have_begun([run], 15))
    preempt(jobs[0])
    thread.join(600)
    assert (outcomes[0].done, outcomes[0].failures) == (1, {})
    text = run.log.read_text()
    assert "Interrupted after" in text
    assert text.count("-- on ") == 3  # preempted, resumed, evaluated
    assert len(jobs) == 2  # the first one was queued again, not submitted again
    (whole,) = plan(tmp_path / "whole", **changes)
    train(whole)
    assert_same_weights(run.path, whole.path)
    assert [row["update"] for row in Run.open(run.path).metrics()] == [*range(1, LONG + 1)]


DRIVER = """
import sys
from prism_motor.campaigns.places.slurm import SlurmPlace
from prism_motor.cli import main

SlurmPlace.__init__.__kwdefaults__["cluster"] = "local"
main(["campaign", "run", sys.argv[1], "--on", "slurm"])
"""
"""The command as users give it, with the executor that needs no Slurm."""


@pytest.mark.slow
def test_ctrl_c_cancels_jobs_which_save_and_the_command_goes_on(tmp_path):
    changes = {
        "updates": LONG,
        "seeds": [1],
        "arms": [{"name": "mlp"}],
        "overrides": {**campaign().overrides, "checkpoint_every": 1000},
    }
    folder = tmp_path / "cut"
    folder.mkdir()
    write_record(campaign(**changes), folder)
    (run,) = plan(folder, **changes)
    words = [sys.executable, "-c", DRIVER, str(folder)]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: have_begun([run], 15))
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=300)
    assert driver.returncode == 130, said
    assert f"Continue with: prism campaign run {folder} --on slurm" in said
    wait_for(lambda: not is_locked(run.log))
    cut = Run.open(run.path)
    assert 15 <= cut.steps()[-1] < LONG
    assert cut.steps()[-1] == cut.metrics()[-1]["update"]  # it saved on the way out
    assert subprocess.run(words, stdout=subprocess.DEVNULL).returncode == 0
    (whole,) = plan(tmp_path / "whole", **changes)
    train(whole)
    assert_same_weights(run.path, whole.path)
    assert (run.path / "evaluations" / "nominal-101.json").exists()


def preempt(job):
    """Send what Slurm sends before it takes a machine away, to the task itself."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", job.job_id], capture_output=True, text=True, check=True
    )
    subprocess.run(["kill", "-USR2", *listed.stdout.split()], check=True)
