"""The rsl_rl models: sizes, exports that keep the polynomial, warm-up by PPO update, training."""

import copy
import inspect
import shutil

import pytest
import torch
from torch import nn

pytest.importorskip("rsl_rl", reason="rsl_rl is not installed (extra 'locomotion')")

from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from rsl_rl.models import MLPModel
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from prism_motor.export import check_parity, export_onnx, export_torchscript
from prism_motor.integrations.rsl_rl import (
    AfterModel,
    GatedResidualModel,
    PrismModel,
    ResidualModel,
)
from prism_motor.nn import advance_warmup, build_actor, count_parameters

PRISM = "prism_motor.integrations.rsl_rl:PrismModel"
RESIDUAL = "prism_motor.integrations.rsl_rl:ResidualModel"
GATED_RESIDUAL = "prism_motor.integrations.rsl_rl:GatedResidualModel"
AFTER = "prism_motor.integrations.rsl_rl:AfterModel"


class PointEnv(VecEnv):
    """Points on a line, pushed towards the origin; episodes of 20 steps."""

    def __init__(self, num_envs=16):
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, 20
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.state = torch.randn(num_envs, 2)

    def get_observations(self):
        return TensorDict({"policy": self.state.clone()}, batch_size=[self.num_envs])

    def step(self, actions):
        self.episode_length_buf += 1
        speed = (self.state[:, 1] + 0.1 * actions[:, 0]).clamp(-2, 2)
        self.state = torch.stack([self.state[:, 0] + 0.1 * speed, speed], -1)
        reward = -self.state[:, 0].square()
        done = self.episode_length_buf >= self.max_episode_length
        self.state[done] = torch.randn(int(done.sum()), 2)
        self.episode_length_buf[done] = 0
        return self.get_observations(), reward, done, {"time_outs": done}


def runner(class_name, seed=0, algorithm=None, torch_compile_mode=None, **actor):
    torch.manual_seed(seed)
    width = {} if class_name == AFTER else {"latent": 8}
    config = {
        "num_steps_per_env": 8,
        "save_interval": 1000,
        "torch_compile_mode": torch_compile_mode,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {"class_name": class_name, "hidden_dims": [16], **width, **actor},
        "critic": {"class_name": "MLPModel", "hidden_dims": [16]},
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 2,
            "num_mini_batches": 3,
            "rnd_cfg": None,
            "symmetry_cfg": None,
            **(algorithm or {}),
        },
    }
    return OnPolicyRunner(PointEnv(), config, log_dir=None, device="cpu")


def observation(*shape):
    return TensorDict({"policy": torch.randn(*shape)}, batch_size=[shape[0]])


def make(cls, size=12, actions=3, **options):
    width = {} if cls is AfterModel else {"latent": 10}
    options = {"hidden_dims": [16, 8], **width, **options}
    sample = TensorDict({"policy": torch.zeros(4, size)}, batch_size=[4])
    return cls(sample, {"actor": ["policy"]}, "actor", actions, **options)


def trained_looking(cls, **options):
    """A model whose polynomial, warm-up and normaliser all matter for the output."""
    torch.manual_seed(1)
    model = make(cls, **options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.copy_(0.5 + 0.1 * torch.randn_like(parameter))
    if model.obs_normalization:
        for _ in range(3):
            sample = TensorDict({"policy": 3 + 2 * torch.randn(64, 12)}, batch_size=[64])
            model.update_normalization(sample)
    return model


MODELS = [
    pytest.param(PrismModel, {}, id="prism"),
    pytest.param(PrismModel, {"degree": 3, "warmup": 10, "bound": 1.0}, id="prism-warmup-bound"),
    pytest.param(ResidualModel, {"warmup": 10}, id="prism-residual"),
    pytest.param(GatedResidualModel, {"warmup": 10}, id="prism-residual-gated"),
    pytest.param(AfterModel, {"warmup": 10}, id="prism-after"),
    pytest.param(PrismModel, {"bypass": [3, 0]}, id="prism-bypass"),
]


@pytest.mark.parametrize(
    ("cls", "degree", "expected"),
    [
        (PrismModel, 1, 543_884),
        (PrismModel, 2, 724_876),
        (PrismModel, 3, 905_868),
        (ResidualModel, 1, 790_412),
        (ResidualModel, 2, 921_996),
        (ResidualModel, 3, 1_053_580),
        (GatedResidualModel, 2, 922_252),
        (AfterModel, 2, 560_396),
    ],
)
def test_parameter_counts_are_the_papers(cls, degree, expected):
    width = {} if cls is AfterModel else {"latent": 256}
    model = make(cls, 705, 12, hidden_dims=[512, 256, 128], degree=degree, **width)
    assert count_parameters(model) == expected + 12  # the standard deviations


def test_defaults_are_the_papers():
    options = {"obs_groups": {"actor": ["policy"]}, "obs_set": "actor", "output_dim": 12}
    assert count_parameters(PrismModel(observation(2, 705), **options)) == 724_876 + 12
    assert count_parameters(ResidualModel(observation(2, 705), **options)) == 921_996 + 12


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (PrismModel, "prism"),
        (ResidualModel, "prism-residual"),
        (GatedResidualModel, "prism-residual-gated"),
        (AfterModel, "prism-after"),
    ],
)
def test_one_seed_gives_the_network_of_prism_nn(cls, name):
    torch.manual_seed(3)
    model = make(cls)
    torch.manual_seed(3)
    width = {} if cls is AfterModel else {"latent": 10}
    actor = build_actor(name, 12, 3, hidden=(16, 8), **width)
    keys = {k.replace("mlp.", "trunk.") for k in model.state_dict() if "distribution" not in k}
    assert keys == actor.state_dict().keys()
    obs = observation(5, 12)
    assert torch.equal(model(obs), actor(obs["policy"]))


@pytest.mark.parametrize("cls", [PrismModel, AfterModel])
def test_trunk_keeps_the_initialisation_of_the_distribution(cls):
    model = make(
        cls,
        distribution_cfg={"class_name": "HeteroscedasticGaussianDistribution", "init_std": 0.3},
    )
    model(observation(5, 12), stochastic_output=True)
    assert torch.allclose(model.output_std, torch.full((5, 3), 0.3))


def test_without_a_distribution_the_model_is_deterministic():
    model = make(PrismModel, distribution_cfg=None)
    obs = observation(5, 12)
    assert torch.equal(model(obs, stochastic_output=True), model(obs))


def test_unknown_keys_name_the_allowed_ones():
    with pytest.raises(ValueError, match=r"'hidden'.*bound, .*gate_init, hidden_dims.*warmup"):
        make(PrismModel, hidden=[3])
    with pytest.raises(ValueError, match=r"'gate_init'.*degree.*latent.*warmup"):
        make(ResidualModel, gate_init=0.1)
    with pytest.raises(ValueError, match=r"'silu'.*swish"):
        make(PrismModel, activation="silu")


def test_swish_is_silu_in_trunk_and_encoder():
    model = make(PrismModel, activation="swish")
    kinds = {type(m) for m in model.modules() if type(m).__module__.endswith("activation")}
    assert kinds == {nn.SiLU}


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize(("cls", "options"), MODELS)
def test_exports_contain_normaliser_and_polynomial(cls, options, normalise, tmp_path):
    model = trained_looking(cls, obs_normalization=normalise, **options)
    advance_warmup(model, 5)
    obs = observation(9, 12)
    expected = model(obs).detach()

    jit, onnx = model.as_jit(), model.as_onnx()
    example = onnx.get_dummy_inputs()
    for exported in (jit, onnx):
        assert torch.allclose(exported(obs["policy"]), expected, atol=1e-6)
    path = export_torchscript(jit, tmp_path / "policy.pt", example)
    assert check_parity(jit, path, obs["policy"]) <= 1e-5
    path = export_onnx(onnx, tmp_path / "policy.onnx", example, input_names=onnx.input_names)
    assert check_parity(jit, path, obs["policy"]) <= 1e-5

    # The comparisons above mean something: without the products the policy is another one.
    linear = copy.deepcopy(jit)
    for name, parameter in linear.named_parameters():
        if name.endswith("gate") or ".factors." in name:
            parameter.data.zero_()
    assert (linear(obs["policy"]) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("class_name", [PRISM, RESIDUAL, GATED_RESIDUAL, AFTER])
def test_runner_exports_the_policy_it_runs(class_name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    run = runner(class_name, obs_normalization=True, warmup=6)
    run.learn(3)
    obs = observation(1, 2)
    expected = run.get_inference_policy()(obs).detach()
    run.export_policy_to_jit(str(tmp_path))
    loaded = torch.jit.load(str(tmp_path / "policy.pt"))
    assert torch.allclose(loaded(obs["policy"]), expected, atol=1e-5)
    run.export_policy_to_onnx(str(tmp_path))
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    (actions,) = session.run(["actions"], {"obs": obs["policy"].numpy()})
    assert torch.allclose(torch.as_tensor(actions), expected, atol=1e-5)


@pytest.mark.parametrize("class_name", [PRISM, RESIDUAL, GATED_RESIDUAL, AFTER])
def test_warmup_counts_ppo_updates_and_survives_a_checkpoint(class_name, tmp_path):
    first = runner(class_name, warmup=500)
    (key,) = (k for k in first.alg.actor.state_dict() if k.endswith("warmup.count"))
    first.learn(4)
    first.save(str(tmp_path / "model.pt"))
    assert first.alg.actor.state_dict()[key] == 4
    saved = torch.load(tmp_path / "model.pt", weights_only=False)
    assert saved["actor_state_dict"][key] == 4

    resumed = runner(class_name, warmup=500, seed=5)
    resumed.learn(1)  # a pending update must not be added to the loaded count
    resumed.load(str(tmp_path / "model.pt"))
    assert resumed.alg.actor.state_dict()[key] == 4
    resumed.learn(2)
    assert resumed.alg.actor.state_dict()[key] == 6


def test_warmup_is_constant_within_an_iteration():
    """Rollout and update of one iteration see the same scale, the next iteration the next one."""
    run = runner(RESIDUAL, warmup=500)
    warmup = run.alg.actor.encoder.warmup
    seen = []
    forward = warmup.forward
    warmup.forward = lambda: seen.append(int(warmup.count)) or forward()
    run.learn(3)
    passes = 8 + 2 * 3  # environment steps, then minibatches
    assert seen == [0] * passes + [1] * passes + [2] * passes


def used_in_a_rollout(model):
    with torch.no_grad():
        model(observation(4, 12))


@pytest.mark.parametrize(
    "end",
    [
        used_in_a_rollout,
        lambda model: model.eval()(observation(4, 12)),
        lambda model: model.update_normalization(observation(4, 12)),
        lambda model: model.state_dict(),
        lambda model: model.as_jit(),
        lambda model: model.as_onnx(),
    ],
    ids=["rollout", "evaluation", "normalisation", "checkpoint", "jit", "onnx"],
)
def test_an_update_counts_once_whatever_ends_it(end):
    model = make(ResidualModel)
    for _ in range(3):  # minibatches of one update
        model(observation(4, 12)).sum().backward()
    assert model.encoder.warmup.count == 0
    end(model)
    end(model)
    assert model.encoder.warmup.count == 1


def test_loading_replaces_the_count():
    model, other = make(ResidualModel), make(ResidualModel)
    other.encoder.warmup.advance(7)
    model(observation(4, 12)).sum().backward()
    model.load_state_dict(other.state_dict())
    used_in_a_rollout(model)
    assert model.encoder.warmup.count == 7


def test_a_copy_counts_its_own_updates():
    model = make(ResidualModel)
    twin = copy.deepcopy(model)
    twin(observation(4, 12)).sum().backward()
    assert twin.state_dict()["encoder.warmup.count"] == 1
    assert model.state_dict()["encoder.warmup.count"] == 0


def test_use_without_learning_does_not_count_as_an_update():
    model = make(ResidualModel)
    model(observation(4, 12))  # with gradients that nobody asks for
    with torch.no_grad():
        model(observation(4, 12))
    model.eval()
    model(observation(4, 12))
    model.train()
    model.update_normalization(observation(4, 12))
    assert model.state_dict()["encoder.warmup.count"] == 0


@pytest.mark.parametrize("class_name", [PRISM, RESIDUAL, GATED_RESIDUAL, AFTER])
def test_training_changes_every_parameter_of_the_encoder(class_name):
    run = runner(class_name, obs_normalization=True)
    actor = run.alg.get_policy()
    assert isinstance(actor, MLPModel)
    assert type(run.alg.critic) is MLPModel
    before = {name: p.detach().clone() for name, p in actor.named_parameters()}
    run.learn(3)
    for name, parameter in actor.named_parameters():
        assert torch.isfinite(parameter).all(), name
        assert not torch.equal(parameter, before[name]), name


def test_mixed_precision_forward_and_gradients_are_finite():
    model = trained_looking(PrismModel, degree=3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(observation(32, 12), stochastic_output=True)
        loss = model.get_output_log_prob(torch.zeros(32, 3)).mean()
    loss.backward()
    gradients = [p.grad for p in model.parameters()]
    assert all(g is not None and torch.isfinite(g).all() for g in gradients)


@pytest.mark.skipif(
    "use_mixed_precision" not in inspect.signature(PPO.__init__).parameters,
    reason="this rsl_rl has no mixed precision",
)
def test_trains_in_mixed_precision():
    run = runner(PRISM, algorithm={"use_mixed_precision": True})
    run.learn(2)
    assert all(torch.isfinite(p).all() for p in run.alg.get_policy().parameters())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(PPO, "compile"), reason="this rsl_rl does not compile models")
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_training_is_the_same_training():
    compiled = runner(RESIDUAL, torch_compile_mode="default")
    compiled.learn(2)
    plain = runner(RESIDUAL)
    plain.learn(2)
    assert compiled.alg.actor is not compiled.alg.get_policy()  # it was compiled
    ours, theirs = (run.alg.get_policy().state_dict() for run in (compiled, plain))
    assert ours["encoder.warmup.count"] == 2
    for name, value in ours.items():
        assert torch.allclose(value.float(), theirs[name].float(), atol=1e-5), name
