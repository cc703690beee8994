"""Overrides of frozen configs by dotted keys."""

from dataclasses import replace

import pytest

from prism_motor.locomotion.presets import PRESETS, make_config, observation_size
from prism_motor.nn import build_actor, count_parameters
from prism_motor.runs import ConfigError, apply_overrides, from_dict, to_dict
from prism_motor.runs.configs import find_differences, flatten, parse_assignments

CONFIG = make_config("laptop", "gated")


def test_only_the_named_settings_change():
    changed = apply_overrides(
        CONFIG, {"ppo.learning_rate": 5e-4, "task.observations.actor_frames": 15, "envs": 64}
    )
    observations = replace(CONFIG.task.observations, actor_frames=15)
    assert changed == replace(
        CONFIG,
        ppo=replace(CONFIG.ppo, learning_rate=5e-4),
        task=replace(CONFIG.task, observations=observations),
        envs=64,
    )
    assert CONFIG.ppo.learning_rate == PRESETS["laptop"].ppo.learning_rate


def test_nested_tables_say_the_same_as_dotted_keys():
    nested = {"ppo": {"epochs": 2}, "task": {"actions": {"on_reference": False}}}
    dotted = {"ppo.epochs": 2, "task.actions.on_reference": False}
    assert apply_overrides(CONFIG, nested) == apply_overrides(CONFIG, dotted)
    assert flatten(nested) == dotted


def test_the_actor_of_the_run_decides_what_it_takes():
    assert apply_overrides(CONFIG, {"actor.gate_init": 0.5}).actor.gate_init == 0.5
    with pytest.raises(ConfigError, match=r"Unknown setting 'actor.gate_init'.*actor.hidden"):
        make_config("laptop", "mlp", overrides={"actor.gate_init": 0.5})


def test_numbers_and_lists_take_the_type_of_the_setting():
    changed = apply_overrides(
        CONFIG, {"ppo.gamma": 1, "critic_hidden": [32, 16], "task.terminations.roll": None}
    )
    assert isinstance(changed.ppo.gamma, float)
    assert changed.critic_hidden == (32, 16)
    assert changed.task.terminations.roll is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("ppo.learning_rat", 1e-3, r"Did you mean 'ppo.learning_rate'\?"),
        ("learning_rate", 1e-3, r"Did you mean 'ppo.learning_rate'\?"),
        ("ppo", 3, "group of settings.*ppo.steps"),
        ("envs.count", 3, "envs is one value"),
        ("ppo.epochs", 2.5, "expected int, got 2.5"),
        ("ppo.epochs", True, "expected int, got True"),
        ("ppo.mirror", 1, "expected bool, got 1"),
        ("ppo.learning_rate", "fast", "expected float, got 'fast'"),
        ("ppo.learning_rate", float("nan"), "finite"),
        ("critic_hidden", 32, "expected a list"),
        ("task.randomisation.friction", [1.0], "expected 2 values"),
    ],
)
def test_what_does_not_fit_is_refused(key, value, message):
    with pytest.raises(ConfigError, match=message):
        apply_overrides(CONFIG, {key: value})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("ppo.schedule", "liner", "Did you mean 'linear'"),
        ("ppo.epochs", 0, "epochs must be at least 1"),
        ("ppo.learning_rate", 0, "above zero"),
        ("envs", 0, "envs must be at least 1"),
        ("iterations", -3, "iterations must be at least 1"),
        ("actor.degree", 0, "degree must be at least 1"),
    ],
)
def test_values_that_no_run_can_have_are_refused(key, value, message):
    with pytest.raises(ValueError, match=message):
        apply_overrides(CONFIG, {key: value})


def test_a_setting_given_twice_is_refused():
    with pytest.raises(ConfigError, match=r"ppo.epochs is given twice"):
        apply_overrides(CONFIG, {"ppo.epochs": 2, "ppo": {"epochs": 3}})
    with pytest.raises(ConfigError, match="is given as a value"):
        apply_overrides(CONFIG, {"ppo": 2, "ppo.epochs": 3})


def test_assignments_are_json_or_else_strings():
    words = ["a.rate=5e-4", "b=false", "c=[1, 2]", "d=linear", 'e="3"', "f=null", "g=x=y"]
    assert parse_assignments(words) == {
        "a.rate": 5e-4, "b": False, "c": [1, 2], "d": "linear", "e": "3", "f": None, "g": "x=y",
    }  # fmt: skip
    for word in ("a", "=3", ""):
        with pytest.raises(ConfigError, match="KEY=VALUE"):
            parse_assignments([word])
    with pytest.raises(ConfigError, match="twice"):
        parse_assignments(["a=1", "a=2"])


def test_differences_name_the_keys():
    one = {"a": 1, "b": {"c": [1, 2], "d": 3}}
    assert find_differences(one, one) == {}
    assert find_differences(one, {"a": 2, "b": {"c": [1, 2]}, "e": 5}) == {
        "a": (1, 2), "b.d": (3, None), "e": (None, 5),
    }  # fmt: skip


def test_the_larger_mlp_is_matched_to_the_overridden_task():
    for overrides in ({}, {"task.observations.actor_frames": 9}, {"actor.degree": 3}):
        gated = make_config("laptop", "gated", overrides=overrides)
        larger = make_config("laptop", "mlp-larger", overrides=overrides)
        inputs, outputs = observation_size(gated.task)
        assert inputs == gated.task.observations.actor_frames * 47
        counts = [count_parameters(build_actor(c.actor, inputs, outputs)) for c in (gated, larger)]
        assert counts[1] == pytest.approx(counts[0], rel=1e-3)


def test_the_config_of_the_run_records_the_result():
    config = make_config(
        "laptop", "gated", seed=4, name="cubic", overrides={"actor.degree": 3, "iterations": 7}
    )
    assert (config.arm, config.seed, config.iterations, config.actor.degree) == ("cubic", 4, 7, 3)
    assert from_dict(type(config), to_dict(config)) == config
    for key in ("seed", "arm", "preset"):
        with pytest.raises(ConfigError, match="names the run"):
            make_config("laptop", "gated", overrides={key: 1})
