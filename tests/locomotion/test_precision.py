"""Walking with bf16: what computes with it, what does not, and that nothing else changes."""

from collections import defaultdict

import pytest
import torch

from prism_motor.locomotion.export import export_run
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.trainer import WalkingTrainer
from prism_motor.train import session
from prism_motor.train.finite import NonFiniteTrainingError
from tests.train.cases import make_walking

ARMS = ["mlp", "prism", "prism-residual"]


def watch_linears(model):
    """Return the list in which the types of what linear layers return will be noted."""
    seen = []
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda _part, _inputs, output: seen.append(output.dtype))
    return seen


@pytest.mark.parametrize("arm", ARMS)
def test_networks_compute_in_bf16_and_everything_else_in_fp32(arm):
    trainer = WalkingTrainer(make_walking(arm, precision="bf16"))
    seen = [watch_linears(model) for model in trainer.models().values()]
    trainer.update()
    assert {kind for kinds in seen for kind in kinds} == {torch.bfloat16}
    storage = trainer.ppo.storage
    for name in ("actions", "values", "actions_log_prob", "returns", "advantages"):
        assert getattr(storage, name).dtype == torch.float32
    assert all(values.dtype == torch.float32 for values in storage.distribution_params)
    learned = {k: v for k, v in trainer.state()[0].items() if not k.startswith(("env", "torch"))}
    assert not [name for name, value in learned.items() if value.dtype == torch.bfloat16]


@pytest.mark.parametrize("arm", ARMS)
def test_the_first_ratios_are_one(arm):
    """Rollouts compute as the learner does, so that only learning changes a probability."""
    trainer = WalkingTrainer(make_walking(arm, precision="bf16"))
    with torch.inference_mode():
        trainer._collect(defaultdict(float))
    ppo, storage = trainer.ppo, trainer.ppo.storage
    observations = storage.observations.flatten(0, 1)
    ratios = {}
    for enabled in (True, False):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            ppo.actor(observations, stochastic_output=True)
            now = ppo.actor.get_output_log_prob(storage.actions.flatten(0, 1))
        ratios[enabled] = (now - storage.actions_log_prob.flatten()).abs().max().item()
    assert ratios[True] < 1e-5
    assert ratios[False] > 1e-4  # what fp32 rollouts would have added as noise


def test_fp32_is_as_it_was():
    rows = [WalkingTrainer(make_walking(**given)).update() for given in ({}, {"precision": "fp32"})]
    assert rows[0]["loss/surrogate"] == rows[1]["loss/surrogate"]
    other = WalkingTrainer(make_walking(precision="bf16")).update()
    assert other["loss/value"] != rows[0]["loss/value"]
    assert other["loss/value"] == pytest.approx(rows[0]["loss/value"], rel=0.05)


@pytest.mark.parametrize("arm", ["prism", "prism-residual"])
def test_a_run_resumes_exactly(arm):
    config = make_walking(arm, precision="bf16")
    whole = WalkingTrainer(config)
    whole.update()
    kept = whole.state()
    whole.update()
    resumed = WalkingTrainer(config)
    torch.manual_seed(999)
    resumed.restore(*kept)
    resumed.update()
    one, two = whole.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("poison", "message"),
    [
        (lambda ppo: ppo.actor.mlp[-1].bias, r"the action's mean is nan"),
        (lambda ppo: ppo.critic.mlp[0].weight, r"the critic's value is nan"),
    ],
)
def test_what_is_not_finite_is_named(poison, message):
    trainer = WalkingTrainer(make_walking(precision="bf16"))
    with torch.no_grad():
        poison(trainer.ppo).fill_(float("nan"))
    with pytest.raises(NonFiniteTrainingError, match=f"{message}.*because weight"):
        trainer.update()


def test_a_trained_policy_is_an_fp32_policy(tmp_path):
    pytest.importorskip("onnxruntime")
    config = make_walking(updates=1, checkpoint_every=1, precision="bf16")
    session.train(*session.start(config, tmp_path / "run"))
    policy = load_policy(tmp_path / "run")
    assert policy(torch.randn(2, policy.actor.obs_dim)).dtype == torch.float32
    folder = export_run(tmp_path / "run")  # compares what it wrote with the policy
    assert (folder / "policy.onnx").is_file()
