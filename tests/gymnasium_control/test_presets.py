"""Presets: the zoo's settings, and arms of the same size."""

import pytest

from prism_motor._checks import InputError
from prism_motor.gymnasium_control.domain import GYMNASIUM
from prism_motor.gymnasium_control.learners import make_envs, make_model
from prism_motor.gymnasium_control.presets import ARMS, PRESETS, make_config
from prism_motor.gymnasium_control.zoo import ENVIRONMENTS
from prism_motor.nn import count_parameters


def config_of(env, algorithm, arm="prism", preset="zoo", **overrides):
    leading = {"task.env": env, "algorithm": algorithm}
    return make_config(preset, arm, overrides={**leading, **overrides})


def count(parts):
    return sum(count_parameters(part) for part in parts)


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_arms_have_the_size_that_they_say_in_stable_baselines3(env, algorithm):
    actors, critics = {}, {}
    for arm in ARMS:
        made = config_of(
            env, algorithm, arm, **({"learner.buffer": 10} if algorithm == "sac" else {})
        )
        config = GYMNASIUM.prepare(made)
        model = make_model(config, make_envs(config))
        policy = model.policy
        if algorithm == "sac":
            actor, critic = [policy.actor], [policy.critic, policy.critic_target]
        else:
            actor = [policy.mlp_extractor.policy_net, policy.action_net]
            critic = [policy.mlp_extractor.value_net, policy.value_net]
        actors[arm], critics[arm] = count(actor), count(critic)
        assert GYMNASIUM.reporting.parameters(config) == actors[arm]
        model.env.close()
    assert actors["mlp-matched"] == pytest.approx(actors["prism"], rel=0.01)
    assert actors["mlp"] < actors["prism"]
    assert actors["mlp"] < actors["mlp-large"]
    assert len(set(critics.values())) == 1


def test_the_zoos_settings():
    cheetah = config_of("HalfCheetah-v5", "ppo", "mlp")
    assert cheetah.learner.learning_rate == 2.0633e-5
    assert cheetah.learner.epochs == 20
    assert (cheetah.actor.hidden, cheetah.actor.activation) == ((256, 256), "relu")
    assert cheetah.critic_hidden == (256, 256)
    assert cheetah.updates == 1954  # as Stable-Baselines3 rounds a million steps up
    walker, ant = (config_of(env, "ppo", "mlp") for env in ("Walker2d-v5", "Ant-v5"))
    assert (walker.actor.hidden, walker.actor.activation) == ((64, 64), "tanh")
    assert (ant.learner.steps, ant.learner.batch) == (2048, 64)
    assert ant.learner.orthogonal
    humanoid = config_of("Humanoid-v5", "sac", "mlp")
    assert humanoid.learner.learning_starts == 10_000
    assert humanoid.updates * humanoid.samples_per_update == 2_000_000
    other = config_of("Swimmer-v5", "ppo", "mlp")
    assert other.learner == ant.learner


def test_presets_change_the_budget_and_the_environment_decides_the_rest():
    for name in PRESETS:
        found = {
            (env, algorithm): config_of(env, algorithm, "mlp-matched", name)
            for env in ENVIRONMENTS
            for algorithm in ("ppo", "sac")
        }
        for (env, algorithm), config in found.items():
            assert (config.task.env, config.algorithm, config.preset) == (env, algorithm, name)
    laptop = config_of("Hopper-v5", "ppo", preset="laptop")
    assert laptop.learner == config_of("Hopper-v5", "ppo").learner
    assert laptop.updates * laptop.samples_per_update >= 100_000
    more = config_of("Hopper-v5", "ppo", preset="laptop", envs=4)
    assert more.updates == 49
    assert config_of("Hopper-v5", "ppo", updates=3).updates == 3


def test_an_override_wins_over_the_zoo_also_where_another_environment_has_it():
    config = config_of("HalfCheetah-v5", "ppo", **{"learner.gamma": 0.999, "actor.degree": 3})
    assert config.learner.gamma == 0.999
    assert config.actor.degree == 3
    cubic = config_of("HalfCheetah-v5", "ppo", "mlp-matched", **{"actor.degree": 3})
    assert cubic.actor.hidden > config_of("HalfCheetah-v5", "ppo", "mlp-matched").actor.hidden
    factor = config_of("Hopper-v5", "ppo", **{"learner.rate_factor": 2.0})
    assert factor.learner.rate == 2 * 9.80828e-5


def test_mistakes_are_refused():
    with pytest.raises(InputError, match=r"Unknown algorithm 'a2c'.*ppo, sac"):
        config_of("Hopper-v5", "a2c")
    with pytest.raises(InputError, match="learns with fp32"):
        config_of("Hopper-v5", "ppo", precision="bf16")
    with pytest.raises(InputError, match=r"learner\.tau"):
        config_of("Hopper-v5", "ppo", **{"learner.tau": 0.1})
    with pytest.raises(InputError, match="names the run"):
        config_of("Hopper-v5", "ppo", **{"learner.name": "sac"})
