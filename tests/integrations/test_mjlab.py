"""The mjlab configs: their fields are the actors' and a task trains with them."""

from dataclasses import asdict, fields

import pytest
import torch

from prism_motor.nn import (
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
)

pytest.importorskip(
    "mjlab", reason="mjlab is not installed (it pins other mujoco and rsl_rl versions)"
)

from mjlab.rl import RslRlModelCfg, RslRlVecEnvWrapper

from prism_motor.integrations.mjlab import (
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
    added = {field.name for field in fields(cfg)} - {field.name for field in fields(RslRlModelCfg)}
    assert added == {field.name for field in fields(config)} - {"hidden", "activation"}
    given = cfg()
    assert {name: getattr(given, name) for name in added} == {
        name: getattr(config(), name) for name in added
    }
    assert given.hidden_dims == config().hidden
    module, _, name = given.class_name.partition(":")
    assert (module, name) == (model.__module__, model.__name__)


@pytest.mark.slow
@pytest.mark.parametrize(("cfg", "config", "model"), PAIRS)
def test_a_task_trains_and_exports(cfg, config, model, tmp_path):
    import mjlab.tasks  # noqa: F401 - registers the tasks
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.rl import MjlabOnPolicyRunner
    from mjlab.tasks.registry import load_env_cfg, load_rl_cfg

    onnxruntime = pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    env_cfg, agent = load_env_cfg("Mjlab-Cartpole-Balance"), load_rl_cfg("Mjlab-Cartpole-Balance")
    env_cfg.scene.num_envs = 8
    agent.num_steps_per_env = 8
    width = {} if cfg is AfterModelCfg else {"latent": 8}
    agent.actor = cfg(hidden_dims=(16,), warmup=4, **width)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg=env_cfg, device="cpu"))
    runner = MjlabOnPolicyRunner(env, asdict(agent), None, "cpu")
    actor = runner.alg.get_policy()
    assert type(actor) is model
    before = {name: p.detach().clone() for name, p in actor.named_parameters()}
    runner.learn(2)
    (count,) = (v for k, v in actor.state_dict().items() if k.endswith("warmup.count"))
    assert count == 2
    for name, parameter in actor.named_parameters():
        assert not torch.equal(parameter, before[name]), name

    runner.export_policy_to_onnx(str(tmp_path))
    obs = env.get_observations()[:1]
    expected = runner.get_inference_policy()(obs).detach()
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    (actions,) = session.run(None, {session.get_inputs()[0].name: obs["actor"].numpy()})
    assert torch.allclose(torch.as_tensor(actions), expected, atol=1e-5)
    env.close()
