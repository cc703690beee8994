"""The SB3 policy and extractor: an untouched critic, round trips, real training."""

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed (extra 'sb3')")

from gymnasium import spaces
from stable_baselines3 import A2C, PPO, SAC, TD3
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.sac.policies import SACPolicy

from prism_motor.integrations.stable_baselines3 import (
    PolynomialExtractor,
    PrismActorCriticPolicy,
    PrismSACPolicy,
)
from prism_motor.nn import PolynomialLayer

OPTIONS = {"latent": 24, "degree": 3, "gate_init": 0.2, "net_arch": {"pi": [32], "vf": [48, 16]}}
CRITIC = ("mlp_extractor.value_net.", "value_net.")
OBSERVATIONS = spaces.Box(-1, 1, (5,), np.float32)
ACTIONS = spaces.Box(-1, 1, (2,), np.float32)


def policy(cls=PrismActorCriticPolicy, seed=0, **options):
    torch.manual_seed(seed)
    return cls(OBSERVATIONS, ACTIONS, lambda _: 1e-3, **options)


def critic_state(module):
    return {k: v for k, v in module.state_dict().items() if k.startswith(CRITIC)}


def ppo(policy_class=PrismActorCriticPolicy, seed=0, **options):
    return PPO(
        policy_class, "Pendulum-v1", n_steps=128, batch_size=32, n_epochs=3, seed=seed,
        policy_kwargs={**OPTIONS, **options}, device="cpu",
    )  # fmt: skip


def test_the_critic_is_that_of_mlp_policy():
    ours = policy(**OPTIONS)
    plain = policy(ActorCriticPolicy, net_arch=OPTIONS["net_arch"])
    theirs = critic_state(plain)
    assert {k: v.shape for k, v in critic_state(ours).items()} == {
        k: v.shape for k, v in theirs.items()
    }
    ours.load_state_dict(theirs, strict=False)
    obs = torch.randn(9, 5)
    assert torch.equal(ours.predict_values(obs), plain.predict_values(obs))
    assert not torch.equal(
        ours.get_distribution(obs).distribution.mean, plain.get_distribution(obs).distribution.mean
    )


def test_the_actor_is_the_encoder_then_sb3s_layers():
    ours = policy(**OPTIONS)
    encoder, layers = ours.mlp_extractor.policy_net
    assert isinstance(encoder.interaction, PolynomialLayer)
    assert encoder.interaction.degree == 3
    assert isinstance(encoder.projection[1], nn.Tanh)
    obs = torch.randn(4, 5)
    mean = ours.action_net(layers(encoder(obs)))
    assert torch.equal(ours.get_distribution(obs).distribution.mean, mean)
    actions, values, _ = ours(obs, deterministic=True)
    assert torch.equal(actions, mean)
    assert torch.equal(values, ours.predict_values(obs))


def test_value_loss_does_not_reach_the_encoder():
    ours = policy(**OPTIONS)
    values, log_prob, _ = ours.evaluate_actions(torch.randn(8, 5), torch.zeros(8, 2))
    encoder = list(ours.mlp_extractor.policy_net.parameters())
    critic = [*ours.mlp_extractor.value_net.parameters(), *ours.value_net.parameters()]
    from_value = torch.autograd.grad(values.sum(), encoder, retain_graph=True, allow_unused=True)
    assert all(g is None for g in from_value)
    from_policy = torch.autograd.grad(log_prob.sum(), critic, retain_graph=True, allow_unused=True)
    assert all(g is None for g in from_policy)
    assert all(g.abs().sum() > 0 for g in torch.autograd.grad(log_prob.sum(), encoder))


def test_orthogonal_initialisation_spares_the_factors():
    ours = policy(**OPTIONS)
    interaction = ours.mlp_extractor.policy_net[0].interaction
    assert torch.equal(interaction.gate, torch.full_like(interaction.gate, 0.2))
    assert interaction.weight.abs().max() <= 5**-0.5  # the bound of nn.Linear's own draw


@pytest.mark.parametrize("architecture", [None, [], [16], {"pi": [8]}, {"vf": [8]}])
def test_every_form_of_net_arch(architecture):
    ours = policy(latent=12, net_arch=architecture)
    actions, values, _ = ours(torch.randn(3, 5))
    assert actions.shape == (3, 2)
    assert values.shape == (3, 1)


def test_policy_alone_survives_save_and_load(tmp_path):
    ours = policy(**OPTIONS, activation_fn=nn.ELU)
    ours.save(tmp_path / "policy.zip")
    loaded = PrismActorCriticPolicy.load(tmp_path / "policy.zip")
    obs = torch.randn(6, 5)
    assert loaded.actor_config == ours.actor_config
    assert torch.equal(loaded(obs, deterministic=True)[0], ours(obs, deterministic=True)[0])


def test_ppo_learns_and_survives_save_and_load(tmp_path):
    model = ppo()
    before = {k: v.clone() for k, v in model.policy.state_dict().items()}
    model.learn(384)
    after = model.policy.state_dict()
    for name, value in after.items():
        assert torch.isfinite(value).all(), name
        assert not torch.equal(value, before[name]), name

    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", device="cpu")
    assert type(loaded.policy) is PrismActorCriticPolicy
    obs = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    assert np.array_equal(
        loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0]
    )


def test_one_seed_one_run():
    runs = [ppo(seed=4).learn(256).policy.state_dict() for _ in range(2)]
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])


def test_discrete_actions_and_a2c():
    model = A2C(PrismActorCriticPolicy, "CartPole-v1", policy_kwargs={"latent": 8}, device="cpu")
    model.learn(50)
    assert model.predict(np.zeros(4, np.float32))[0] in (0, 1)


@pytest.mark.parametrize("interaction", ["gated", "product", "glu"])
def test_extractor_trains_in_ppo(interaction):
    model = PPO(
        "MlpPolicy", "Pendulum-v1", n_steps=64, batch_size=32, n_epochs=1, device="cpu",
        policy_kwargs={
            "features_extractor_class": PolynomialExtractor,
            "features_extractor_kwargs": {"features_dim": 16, "interaction": interaction},
        },
    )  # fmt: skip
    extractor = model.policy.features_extractor
    before = extractor.encoder.interaction.weight.detach().clone()
    model.learn(64)
    assert not torch.equal(extractor.encoder.interaction.weight, before)


@pytest.mark.parametrize("algorithm", [SAC, TD3, "TQC"])
def test_extractor_learns_off_policy_and_survives_save_and_load(algorithm, tmp_path):
    if algorithm == "TQC":
        algorithm = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed").TQC
    model = algorithm(
        "MlpPolicy", "Pendulum-v1", learning_starts=20, seed=0, device="cpu",
        policy_kwargs={
            "net_arch": [16],
            "features_extractor_class": PolynomialExtractor,
            "features_extractor_kwargs": {"features_dim": 16, "degree": 3, "bound": 1.0},
        },
    )  # fmt: skip
    # The actor and the critic each have an extractor of their own.
    actor, critic = (
        part.features_extractor.encoder.interaction for part in (model.actor, model.critic)
    )
    assert actor is not critic
    before = {id(p): p.detach().clone() for p in (*actor.parameters(), *critic.parameters())}
    model.learn(30)
    assert all(torch.isfinite(p).all() for p in model.policy.parameters())
    for parameter in (*actor.parameters(), *critic.parameters()):
        assert not torch.equal(parameter, before[id(parameter)])

    model.save(tmp_path / "model.zip")
    loaded = type(model).load(tmp_path / "model.zip", device="cpu")
    obs = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    assert np.array_equal(
        loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0]
    )


def test_errors_say_what_to_do():
    with pytest.raises(TypeError, match=r"keys goal, state\..*FlattenObservation"):
        PolynomialExtractor(spaces.Dict({"goal": OBSERVATIONS, "state": OBSERVATIONS}))
    with pytest.raises(ValueError, match=r"Unknown interaction 'gate'.*gated"):
        policy(interaction="gate")
    with pytest.raises(ValueError, match=r"Unknown activation 'selu'"):
        policy(activation_fn=nn.SELU)
    with pytest.raises(TypeError, match="degre"):
        policy(degre=2)
    with pytest.raises(TypeError, match=r"PPO, A2C and TRPO.*PolynomialExtractor"):
        SAC(PrismActorCriticPolicy, "Pendulum-v1")


def test_extractor_flattens_images_of_any_shape():
    space = spaces.Box(-1, 1, (4, 3), np.float32)
    extractor = PolynomialExtractor(space, 7)
    assert extractor(torch.randn(2, 4, 3)).shape == (2, 7)
    assert extractor.features_dim == 7
    assert extractor.encoder.in_features == 12


@pytest.mark.parametrize("actor", ["mlp", "prism-residual", "prism-residual-gated", "prism-after"])
def test_every_actor_trains_counts_its_warmup_and_survives_save_and_load(actor, tmp_path):
    options = {} if actor == "mlp" else {"warmup": 6}
    model = PPO(
        PrismActorCriticPolicy, "Pendulum-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0,
        policy_kwargs={"actor": actor, "net_arch": [8], **options}, device="cpu",
    )  # fmt: skip
    before = {k: p.detach().clone() for k, p in model.policy.named_parameters()}
    model.learn(4 * 64)
    assert not any(torch.equal(p, before[k]) for k, p in model.policy.named_parameters())
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", device="cpu")
    counts = [v.item() for k, v in loaded.policy.state_dict().items() if k.endswith("count")]
    assert counts == ([] if actor == "mlp" else [4])
    observation = np.zeros(3, np.float32)
    expected = model.predict(observation, deterministic=True)[0]
    np.testing.assert_array_equal(loaded.predict(observation, deterministic=True)[0], expected)


def test_the_polynomial_after_sb3s_layers_starts_as_mlp_policy():
    after = policy(actor="prism-after", net_arch=OPTIONS["net_arch"])
    plain = policy(ActorCriticPolicy, net_arch=OPTIONS["net_arch"])
    missing, unexpected = after.load_state_dict(
        {k.replace("policy_net.0", "policy_net.1.0"): v for k, v in plain.state_dict().items()},
        strict=False,
    )
    assert not unexpected
    assert all(k.startswith("mlp_extractor.policy_net.2.") for k in missing)
    obs = torch.randn(9, 5)
    assert torch.equal(
        after.get_distribution(obs).distribution.mean, plain.get_distribution(obs).distribution.mean
    )


def test_observations_can_bypass_the_polynomial():
    ours = policy(bypass=(4,), **OPTIONS)
    encoder = ours.mlp_extractor.policy_net[0]
    obs = torch.randn(3, 5)
    assert torch.equal(encoder(obs)[:, 24:], obs[:, 4:])
    extractor = PolynomialExtractor(OBSERVATIONS, features_dim=6, bypass=[1])
    assert extractor(obs).shape == (3, extractor.features_dim) == (3, 7)


def test_options_of_another_actor_are_refused():
    with pytest.raises(ValueError, match=r"option of actor 'prism-after' 'latent'; .*degree"):
        policy(actor="prism-after", latent=3)


def test_in_sac_the_actor_alone_has_the_polynomial():
    options = {"latent": 24, "degree": 3, "net_arch": {"pi": [32], "qf": [48, 16]}}
    ours = policy(PrismSACPolicy, **options)
    plain = policy(SACPolicy, net_arch=options["net_arch"])
    for name in ("critic", "critic_target"):
        theirs = getattr(plain, name).state_dict()
        getattr(ours, name).load_state_dict(theirs)  # names and shapes are SB3's
    encoder, layers = ours.actor.latent_pi
    assert encoder.interaction.degree == 3
    obs = torch.randn(4, 5)
    mean = ours.actor.mu(layers(encoder(obs)))
    assert torch.equal(ours(obs, deterministic=True), torch.tanh(mean))
    learned = {id(p) for group in ours.actor.optimizer.param_groups for p in group["params"]}
    assert learned == {id(p) for p in ours.actor.parameters()}


@pytest.mark.parametrize("actor", ["mlp", "prism", "prism-residual", "prism-after"])
def test_every_actor_trains_in_sac_and_survives_save_and_load(actor, tmp_path):
    options = {} if actor == "mlp" else {"warmup": 6}
    model = SAC(
        PrismSACPolicy, "Pendulum-v1", learning_starts=10, batch_size=16, seed=0, device="cpu",
        policy_kwargs={"actor": actor, "net_arch": [8], **options},
    )  # fmt: skip
    before = {k: p.detach().clone() for k, p in model.actor.named_parameters()}
    model.learn(14)
    assert not any(torch.equal(p, before[k]) for k, p in model.actor.named_parameters())
    model.save(tmp_path / "model")
    loaded = SAC.load(tmp_path / "model", device="cpu")
    counts = [v.item() for k, v in loaded.policy.state_dict().items() if k.endswith("count")]
    assert counts == ([] if actor == "mlp" else [4])  # calls of train
    observation = np.zeros(3, np.float32)
    expected = model.predict(observation, deterministic=True)[0]
    np.testing.assert_array_equal(loaded.predict(observation, deterministic=True)[0], expected)
