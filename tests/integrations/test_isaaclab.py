"""The Isaac Lab configs: their fields are the actors', and Isaac Lab's own runner trains with them.

The environment is a toy: Isaac Lab's own load their scenes from the network.
"""

from dataclasses import fields

import pytest
import torch

from prism_motor.nn import (
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
)

pytest.importorskip("isaaclab_rl", reason="Isaac Lab is not installed (it pins other versions)")

from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl import (
    RslRlMLPModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    check_rsl_rl_version,
    create_rsl_rl_runner,
    handle_deprecated_rsl_rl_cfg,
)

from prism_motor.integrations.isaaclab import (
    AfterModelCfg,
    GatedResidualModelCfg,
    PrismModelCfg,
    ResidualModelCfg,
)
from prism_motor.integrations.rsl_rl import (
    AfterModel,
    GatedResidualModel,
    PrismModel,
    ResidualModel,
)
from tests.integrations.test_rsl_rl import PointEnv

PAIRS = [
    pytest.param(PrismModelCfg, PrismActorConfig, PrismModel, id="prism"),
    pytest.param(ResidualModelCfg, ResidualActorConfig, ResidualModel, id="prism-residual"),
    pytest.param(
        GatedResidualModelCfg, GatedResidualActorConfig, GatedResidualModel, id="residual-gated"
    ),
    pytest.param(AfterModelCfg, AfterActorConfig, AfterModel, id="prism-after"),
]


@pytest.mark.parametrize(("cfg", "config", "model"), PAIRS)
def test_fields_and_defaults_are_those_of_the_actor(cfg, config, model):
    base = {field.name for field in fields(RslRlMLPModelCfg)}
    added = {field.name for field in fields(cfg)} - base
    assert added == {field.name for field in fields(config)} - {"hidden", "activation"}
    given = cfg()
    assert {name: getattr(given, name) for name in (*added, "activation")} == {
        name: getattr(config(), name) for name in (*added, "activation")
    }
    assert tuple(given.hidden_dims) == config().hidden
    module, _, name = given.class_name.partition(":")
    assert (module, name) == (model.__module__, model.__name__)


def test_two_configs_share_nothing():
    one, two = PrismModelCfg(), PrismModelCfg()
    one.hidden_dims.append(7)
    one.distribution_cfg.init_std = 0.3
    assert two.hidden_dims == list(PrismActorConfig.hidden)
    assert two.distribution_cfg.init_std == 1.0


@pytest.mark.parametrize(("cfg", "config", "model"), PAIRS)
def test_isaac_labs_runner_trains_with_it(cfg, config, model):
    width = {} if cfg is AfterModelCfg else {"latent": 8}
    agent = RslRlOnPolicyRunnerCfg(
        device="cpu",
        num_steps_per_env=8,
        max_iterations=2,
        save_interval=100,
        experiment_name="toy",
        obs_groups={"actor": ["policy"], "critic": ["policy"]},
        actor=cfg(hidden_dims=[16], warmup=4, **width),
        critic=RslRlMLPModelCfg(hidden_dims=[16], activation="elu"),
        algorithm=RslRlPpoAlgorithmCfg(
            value_loss_coef=1.0, use_clipped_value_loss=True, clip_param=0.2, entropy_coef=0.0,
            num_learning_epochs=2, num_mini_batches=2, learning_rate=1e-3, schedule="adaptive",
            gamma=0.99, lam=0.95, desired_kl=0.01, max_grad_norm=1.0,
        ),
    )  # fmt: skip
    # What `isaaclab train` does with an agent's config.
    agent = handle_deprecated_rsl_rl_cfg(agent, check_rsl_rl_version())
    assert "stochastic" not in to_dict(agent)["actor"]
    runner = create_rsl_rl_runner(PointEnv(), agent)
    actor = runner.alg.get_policy()
    assert type(actor) is model
    before = {name: p.detach().clone() for name, p in actor.named_parameters()}
    runner.learn(agent.max_iterations)
    (count,) = (v for k, v in actor.state_dict().items() if k.endswith("warmup.count"))
    assert count == 2
    for name, parameter in actor.named_parameters():
        assert not torch.equal(parameter, before[name]), name
