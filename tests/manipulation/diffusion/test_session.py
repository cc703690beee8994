import json
import os
import signal
from dataclasses import replace

import pytest
import torch

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.config import OptimiserConfig
from prism_motor.manipulation.diffusion.trainer import Trainer
from prism_motor.runs import Run, RunError, load_checkpoint
from prism_motor.train import handling_session as session
from prism_motor.train.finite import NonFiniteTrainingError

from .conftest import make_config, make_demonstrations


def tensors_of(run):
    return run.load().tensors


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def without_times(rows):
    return [{k: v for k, v in row.items() if "second" not in k} for row in rows]


def test_two_runs_with_the_same_seed_are_equal_to_the_bit(demonstrations, tmp_path):
    for name in ("a", "b"):
        session.train(*session.start(make_config(), demonstrations, tmp_path / name))
    first, second = (Run.open(tmp_path / name) for name in ("a", "b"))
    assert_equal(tensors_of(first), tensors_of(second))
    assert without_times(first.metrics()) == without_times(second.metrics())
    other = replace(make_config(), seed=2)
    session.train(*session.start(other, demonstrations, tmp_path / "c"))
    weights = tensors_of(Run.open(tmp_path / "c"))
    assert any(not torch.equal(weights[name], value) for name, value in tensors_of(first).items())


@pytest.mark.parametrize("images", [False, True])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path, images):
    config = make_config(images=images)
    demonstrations = make_demonstrations(images)
    session.train(*session.start(config, demonstrations, tmp_path / "whole"))

    run, trainer = session.start(config, demonstrations, tmp_path / "killed")

    class KilledError(Exception):
        pass

    def die(row):
        if row["iteration"] == 8:
            raise KilledError  # three updates after the checkpoint at five

    with pytest.raises(KilledError):
        session.train(run, trainer, die)
    torch.manual_seed(999)  # another process has other random numbers
    run, trainer = session.resume(tmp_path / "killed", demonstrations)
    assert trainer.iteration == 5
    session.train(run, trainer)
    whole, killed = (Run.open(tmp_path / name) for name in ("whole", "killed"))
    assert_equal(tensors_of(whole), tensors_of(killed))
    assert without_times(whole.metrics()) == without_times(killed.metrics())


def test_ctrl_c_saves_between_two_updates(demonstrations, tmp_path):
    config = make_config()
    session.train(*session.start(config, demonstrations, tmp_path / "whole"))
    run, trainer = session.start(config, demonstrations, tmp_path / "stopped")
    update, done = trainer.update, []

    def interrupted():
        done.append(1)
        if len(done) == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return update()

    trainer.update = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer)
    assert run.steps()[-1] == 7
    session.train(*session.resume(tmp_path / "stopped", demonstrations))
    assert_equal(
        tensors_of(Run.open(tmp_path / "whole")), tensors_of(Run.open(tmp_path / "stopped"))
    )


def test_all_arms_see_the_same_samples_and_noise(demonstrations, monkeypatch):
    seen = {}
    for arm in ("linear", "mlp", "prism"):
        trainer = Trainer(make_config(arm), demonstrations)
        noise = []
        real = torch.randn

        def spy(*sizes, real=real, noise=noise, **options):
            noise.append(real(*sizes, **options))
            return noise[-1]

        with monkeypatch.context() as patch:
            patch.setattr(torch, "randn", spy)
            trainer.update()
        seen[arm] = noise
    assert len(seen["linear"]) == 1
    for arm in ("mlp", "prism"):
        assert torch.equal(seen[arm][0], seen["linear"][0])


def test_training_learns(demonstrations):
    learner = OptimiserConfig(learning_rate=1e-2, warmup=2)
    config = replace(make_config(), steps=60, batch=32, log_every=15, optimiser=learner)
    trainer = Trainer(config, demonstrations)
    rows = [row for _ in range(60) if (row := trainer.update())]
    assert rows[-1]["loss"] < 0.9 * rows[0]["loss"]
    assert rows[-1]["iteration"] == 60


def test_the_learning_rate_warms_up_and_falls_to_zero(demonstrations):
    trainer = Trainer(replace(make_config(), log_every=1), demonstrations)
    rates = [row["learning_rate"] for _ in range(12) if (row := trainer.update())]
    assert rates[:3] == [0, 5e-4, 1e-3]
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] < 1e-4


def test_other_demonstrations_are_refused_on_resume(demonstrations, tmp_path):
    session.train(*session.start(make_config(), demonstrations, tmp_path / "run"))
    demonstrations.vectors["action"][3] += 0.1
    with pytest.raises(RunError, match="are not those that the run began with"):
        session.resume(tmp_path / "run", demonstrations)


def test_a_bad_value_stops_training_and_can_be_replayed(demonstrations, tmp_path):
    run, trainer = session.start(make_config(), demonstrations, tmp_path / "run")
    forward, calls = trainer.policy.forward, []

    def broken(batch):
        calls.append(1)
        loss, info = forward(batch)
        return (loss * float("nan") if len(calls) == 7 else loss), info

    trainer.policy.forward = broken
    with pytest.raises(NonFiniteTrainingError, match=r"Update 7 stopped: the loss is nan.* is 5"):
        session.train(run, trainer)
    dump = load_checkpoint(tmp_path / "run" / "nonfinite" / "00000006")
    whole = Trainer(make_config(), demonstrations)
    for _ in range(7):
        whole.update()
    again = Trainer(make_config(), demonstrations)
    again.restore(dump.tensors, dump.state)
    again.update()
    assert_equal(whole.state()[0], again.state()[0])


def test_a_run_of_another_kind_is_refused(tmp_path):
    Run.create(tmp_path / "walk", {"preset": "laptop"})
    with pytest.raises(RunError, match="is not a run of prism train manipulation"):
        session.read_config(tmp_path / "walk")


def test_commands_for_walking_refuse_a_run_that_manipulates(demonstrations, tmp_path):
    from prism_motor.locomotion.policy import load_policy

    session.start(make_config(), demonstrations, tmp_path / "run")
    with pytest.raises(RunError, match="learned manipulation from demonstrations"):
        load_policy(tmp_path / "run")


def test_the_config_of_a_run_is_enough_to_read_it_back(demonstrations, tmp_path):
    config = make_config("mlp")
    session.start(config, demonstrations, tmp_path / "run")
    assert session.read_config(tmp_path / "run") == config
    assert json.loads((tmp_path / "run" / "config.json").read_text())["kind"] == "manipulation"
