"""The ledger: what is done, read from the folder alone, and what can start."""

import shutil

import pytest

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.ledger import Ledger, RunState, read_state
from prism_motor.campaigns.status import describe_status
from prism_motor.train.evaluations import Evaluations

from .conftest import campaign, fake, fake_demonstrations, mark_diverged, plan, train, tuned


def evaluate(run, protocol=0):
    evaluations = Evaluations(run.path, run.protocols[protocol])
    for pair in run.protocols[protocol].pairs:
        evaluations.measure(*pair, evaluations.missing(*pair))


def test_states_are_read_from_the_folder_alone(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "small")
    first, second, third, _ = plan(folder)
    assert read_state(first) == RunState(4, 4, 0, 1)
    assert read_state(first).step == "evaluate"
    assert read_state(second) == RunState(2, 4, 0, 1)
    assert read_state(second).step == "train"
    assert read_state(third) == RunState(0, 4, 0, 1)
    evaluate(first)
    assert read_state(first).done
    file = first.path / "evaluations" / "nominal-101.json"
    text = file.read_text()
    for damaged in (
        text[:100],
        text.replace('"envs": 2', '"envs": 3'),
        text.replace('"policy_sha256": "', '"policy_sha256": "0'),
        text.replace('"checkpoint": 4', '"checkpoint": 2'),
    ):
        assert damaged != text
        file.write_text(damaged)
        assert read_state(first).step == "evaluate"


def test_every_protocol_of_an_arm_is_evaluated_in_turn(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "small")
    loads = {"conditions": ["payload", "low-friction"]}
    run, other, *_ = plan(folder, evaluations=[{"arms": ["mlp"], "overrides": loads}])
    assert (run.evaluations, other.evaluations) == (3, 1)
    assert "--conditions" not in run.evaluate_command()[5:]
    evaluate(run)
    assert read_state(run) == RunState(4, 4, 1, 3)
    assert run.evaluate_command()[5:8] == ["--conditions", "payload", "low-friction"]
    evaluate(run, 1)
    assert read_state(run).done


def test_another_config_is_refused_by_key_and_left_alone(trained):
    before = (trained / "mlp-1" / "config.json").read_text()
    changed = campaign(updates=5)
    with pytest.raises(CampaignError, match=r"mlp-1 .*updates is 4 there and 5 in the campaign"):
        Ledger(changed, trained)
    changed = campaign(overrides={**campaign().overrides, "ppo.gamma": 0.9})
    with pytest.raises(CampaignError, match=r"ppo.gamma is 0.99 there and 0.9"):
        Ledger(changed, trained)
    assert (trained / "mlp-1" / "config.json").read_text() == before


def test_more_seeds_arms_and_evaluations_are_welcome(trained):
    more = campaign(
        seeds=[1, 2, 3],
        arms=[{"name": "mlp"}, {"name": "prism-residual"}],
        evaluation={"conditions": ["nominal", "payload"], "seeds": [101, 102]},
    )
    ledger = Ledger(more, trained)
    assert ledger.state(next(iter(ledger))) == RunState(4, 4, 0, 4)
    assert (ledger.finished, len(ledger)) == (0, 6)


def test_policies_wait_for_their_demonstrations(tmp_path):
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    ledger = Ledger(campaign("manipulation"), tmp_path)
    (record,) = ledger.preparations
    assert (record.verb, ledger.state(record).step) == ("record", "train")
    assert all(run.waiting for run in ledger.reported)
    partial = tmp_path / "demos" / "reach.partial"
    partial.mkdir(parents=True)
    for number in range(2):
        (partial / f"{number:06d}.npz").touch()
    assert ledger.refresh(record).updates == 1  # recorded, but not written as a dataset yet
    assert "stopped at 50 %" in describe_status(campaign("manipulation"), tmp_path, 1)
    fake_demonstrations(record)
    assert ledger.refresh(record).trained
    assert not any(run.waiting for run in ledger.reported)


def test_tuning_waits_for_demonstrations_and_reported_runs_for_tuning(tmp_path):
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    ledger = Ledger(tuned("manipulation"), tmp_path)
    (record,) = ledger.preparations
    assert len(ledger) == 1 + 4 + 2
    assert all(run.waiting for run in [*ledger.tuning, *ledger.reported])
    fake_demonstrations(record)
    ledger.refresh(record)
    assert not any(run.waiting for run in ledger.tuning)
    assert all(run.waiting for run in ledger.reported)
    for run, loss in zip(ledger.tuning, (0.5, 0.4, 0.3, 0.6), strict=True):
        fake(run, [loss])
        ledger.refresh(run)
    assert not any(run.waiting for run in ledger.reported)
    rates = {run.arm: run.config.optimiser.learning_rate for run in ledger.reported}
    assert rates == {"linear": 0.001, "prism": 0.0005}  # the lower loss wins


def test_the_time_left_is_estimated_from_what_was_measured(trained):
    ledger = Ledger(campaign(), trained)
    seconds = ledger.seconds_left(1)
    assert seconds > 0
    assert ledger.seconds_left(2) == pytest.approx(seconds / 2, rel=0.5)
    later = ledger.seconds_left(2, later=10) - ledger.seconds_left(2)  # by one process
    assert later > 0
    assert ledger.seconds_left(1, later=20) - seconds == pytest.approx(2 * later)
    slow = ledger.seconds_left(1, startup=100.0) - seconds  # jobs to start: train, evaluate
    states = [ledger.state(work) for work in ledger]
    jobs = sum((not one.trained) + (one.evaluated < one.evaluations) for one in states)
    assert slow == pytest.approx(100 * jobs)
    assert jobs > 1
    assert Ledger(campaign(), trained / "none").seconds_left(1) is None


def test_a_run_that_was_resumed_past_a_divergence_has_not_diverged(tmp_path):
    (run,) = plan(tmp_path, seeds=[1], arms=[{"name": "mlp"}])
    train(run, 2)
    mark_diverged(run, 1)
    assert read_state(run).word == "started"
    mark_diverged(run, 3)  # update 4 failed, with updates that no checkpoint has
    assert (read_state(run).word, read_state(run).step) == ("diverged", None)
    dump = run.path / "nonfinite" / "00000003"
    dump.rename(dump.with_name(".00000003.99.tmp"))  # killed while it was written
    assert read_state(run).step == "train"
