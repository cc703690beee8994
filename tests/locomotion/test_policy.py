"""Walking policies, loaded from run folders."""

import json

import pytest
import torch

from prism_motor.locomotion.policy import load_policy
from prism_motor.runs import RunError
from prism_motor.train import session
from tests.report.folders import unseal
from tests.train.cases import make_walking


@pytest.fixture
def run(tmp_path):
    session.train(*session.start(make_walking(updates=2, checkpoint_every=1), tmp_path / "run"))
    return tmp_path / "run"


def test_a_policy_equals_the_trained_actor(run):
    _, trainer = session.resume(run)
    observations = trainer.env.get_observations()
    policy = load_policy(run)
    with torch.inference_mode():
        trainer.ppo.eval_mode()
        expected = trainer.ppo.actor(observations)
    torch.testing.assert_close(policy(observations["policy"]), expected)
    assert (policy.step, policy.config) == (2, trainer.config)
    assert load_policy(run, step=1).step == 1


def test_a_checkpoint_of_another_actor_is_refused(run):
    config = json.loads((run / "config.json").read_text())
    config["actor"]["latent"] += 1
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match="was changed after the run had begun"):
        load_policy(run)
    unseal(run)
    with pytest.raises(RunError, match=r"does not fit the actor that its config\.json describes"):
        load_policy(run)
