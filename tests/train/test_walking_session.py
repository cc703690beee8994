"""Run folders of training: interruption anywhere, resume, refusals."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.presets import make_config
from prism_motor.runs import CheckpointError, Run, RunError, to_dict
from prism_motor.train import walking_session as session
from prism_motor.train.finite import NonFiniteTrainingError


def small(arm="gated", **changes):
    config = make_config("laptop", arm, seed=3)
    ppo = replace(config.ppo, steps=6, epochs=1, minibatches=2)
    return replace(
        config, ppo=ppo, **{"envs": 8, "checkpoint_every": 2, "iterations": 6, **changes}
    )


def final_weights(path):
    tensors = Run.open(path).load().tensors
    return {k: v for k, v in tensors.items() if k.startswith(("actor", "critic", "optimizer"))}


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name in one:
        assert torch.equal(one[name], two[name]), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    run, trainer = session.start(small(), path)
    session.train(run, trainer, 6)
    return path


def test_a_run_folder_is_complete(whole):
    run = Run.open(whole)
    assert run.steps() == [2, 4, 6]
    assert [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4, 5, 6]
    assert json.loads((whole / "config.json").read_text()) == json.loads(
        json.dumps(to_dict(small()))
    )
    provenance = json.loads((whole / "provenance.json").read_text())
    assert provenance["packages"]["mujoco"]


def test_ctrl_c_saves_and_resumes_exactly(whole, tmp_path):
    run, trainer = session.start(small(), tmp_path / "run")

    def interrupt(row):
        if row["iteration"] == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer, 6, interrupt)
    run, trainer = session.resume(tmp_path / "run")
    session.train(run, trainer, 6)
    assert_same(final_weights(tmp_path / "run"), final_weights(whole))
    assert [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4, 5, 6]


def test_ctrl_c_while_the_state_is_copied_saves_too(whole, tmp_path, monkeypatch):
    run, trainer = session.start(small(checkpoint_every=100), tmp_path / "run")
    copy, copies = trainer.state, 0

    def interrupt():
        nonlocal copies
        copies += 1
        if copies == 4:  # before the first update, then after the third
            signal.raise_signal(signal.SIGINT)
        return copy()

    monkeypatch.setattr(trainer, "state", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer, 6)
    assert run.steps() == [0, 2]
    run, trainer = session.resume(tmp_path / "run")
    session.train(run, trainer, 6)
    assert_same(final_weights(tmp_path / "run"), final_weights(whole))
    assert [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4, 5, 6]


SCRIPT = """
import sys
from tests.train.test_walking_session import small
from prism_motor.train import walking_session as session
if sys.argv[2] == "start":
    run, trainer = session.start(small(iterations=200), sys.argv[1])
else:
    run, trainer = session.resume(sys.argv[1])
session.train(run, trainer, int(sys.argv[3]), lambda row: print(row["iteration"], flush=True))
"""


@pytest.mark.slow
def test_kill_9_resumes_exactly(whole, tmp_path):
    path = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), "start", "200"], stdout=subprocess.PIPE, text=True
    )
    for line in child.stdout:
        if int(line) >= 5:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    last = Run.open(path).load().step
    assert 4 <= last < 200
    subprocess.run([sys.executable, "-c", SCRIPT, str(path), "resume", str(last + 3)], check=True)
    run, trainer = session.start(small(), tmp_path / "uninterrupted")
    session.train(run, trainer, last + 3)
    assert_same(final_weights(path), final_weights(tmp_path / "uninterrupted"))


def test_training_longer_than_planned(whole, tmp_path):
    run, trainer = session.start(small(), tmp_path / "run")
    session.train(run, trainer, 2)
    run, trainer = session.resume(tmp_path / "run", iterations=6)
    session.train(run, trainer, 6)
    assert_same(final_weights(tmp_path / "run"), final_weights(whole))
    with pytest.raises(RunError, match="already had 6 updates"):
        session.resume(tmp_path / "run", iterations=5)


def test_a_damaged_newest_checkpoint_is_refused_and_an_earlier_one_loads(tmp_path):
    run, trainer = session.start(small(), tmp_path / "run")
    session.train(run, trainer, 4)
    file = run.path / "checkpoints" / "00000004" / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        session.resume(tmp_path / "run")
    assert load_policy(tmp_path / "run", step=2).step == 2


def test_policy_equals_the_trained_actor(whole):
    _, trainer = session.resume(whole)
    observations = trainer.env.get_observations()
    policy = load_policy(whole)
    with torch.inference_mode():
        trainer.ppo.eval_mode()
        expected = trainer.ppo.actor(observations)
    torch.testing.assert_close(policy(observations["policy"]), expected)
    assert policy.config == small()


def test_non_finite_values_leave_a_dump_that_replays(tmp_path):
    run, trainer = session.start(small(), tmp_path / "run")
    session.train(run, trainer, 3)
    trainer.env.engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match=r"Iteration 4 stopped: .*environment 5") as e:
        session.train(run, trainer, 6)
    assert "last good checkpoint is 3" in str(e.value)
    assert run.steps()[-1] == 3
    with pytest.raises(NonFiniteTrainingError, match="environment 5"):
        session.replay(run.path / "nonfinite" / "00000003")
    session.resume(tmp_path / "run")  # the run itself is fine


def test_a_full_disk_stops_with_the_last_good_checkpoint(tmp_path, monkeypatch):
    run, trainer = session.start(small(), tmp_path / "run")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(CheckpointError, match="No space left"):
        session.train(run, trainer, 4)
    monkeypatch.undo()
    assert run.load().step == 0


def test_another_number_of_processes_is_refused(whole):
    from prism_motor.train.distributed import Rank

    with pytest.raises(RunError, match=r"trained by 1 processes.*--processes 1"):
        session.resume(whole, rank=Rank(0, 2))


PARALLEL = """
import sys
from pathlib import Path
from prism_motor.cli.train import run_training
from prism_motor.train.distributed import launch
from tests.train.test_walking_session import small
if __name__ == "__main__":
    path = Path(sys.argv[1])
    if sys.argv[2] == "start":
        launch(2, run_training, small("residual", iterations=int(sys.argv[3])), path, None)
    else:
        launch(2, run_training, None, path, int(sys.argv[3]))
"""


@pytest.mark.slow
def test_two_processes_agree_and_resume_exactly(tmp_path):
    script = tmp_path / "parallel.py"
    script.write_text(PARALLEL)

    def call(*arguments):
        environment = os.environ | {"PYTHONPATH": os.getcwd()}
        subprocess.run(
            [sys.executable, str(script), *map(str, arguments)], check=True, env=environment
        )

    call(tmp_path / "whole", "start", 4)
    call(tmp_path / "cut", "start", 2)
    call(tmp_path / "cut", "resume", 4)
    assert_same(final_weights(tmp_path / "cut"), final_weights(tmp_path / "whole"))
    tensors = Run.open(tmp_path / "whole").load().tensors
    assert not torch.equal(tensors["rank0.env.engine.state"], tensors["rank1.env.engine.state"])
    assert load_policy(tmp_path / "whole").step == 4
    assert Run.open(tmp_path / "whole").metrics()[-1]["samples"] == 4 * 8 * 6
