"""Configs to plain data and back, and overrides by dotted keys."""

import json
from dataclasses import dataclass, field, replace

import pytest

from prism_motor._checks import InputError
from prism_motor.domains import DOMAINS
from prism_motor.locomotion.presets import PRESETS, make_config
from prism_motor.locomotion.task import TaskConfig
from prism_motor.locomotion.tasks import TASKS
from prism_motor.runs import ConfigError, apply_overrides, from_dict, to_dict
from prism_motor.runs.configs import find_differences, flatten, to_flags

CONFIG = make_config("laptop", "prism")


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
        apply_overrides(make_config("laptop", "mlp"), {"actor.gate_init": 0.5})


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
        ("envs.count", 3, "envs is a single value"),
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
        ("ppo.epochs", 0, "epochs must be from 1"),
        ("ppo.learning_rate", 0, "above 0"),
        ("envs", 0, "envs must be from 1"),
        ("updates", -3, "updates must be from 1"),
        ("actor.degree", 0, "degree must be from 1"),
    ],
)
def test_values_that_no_run_can_have_are_refused(key, value, message):
    with pytest.raises(ValueError, match=message):
        apply_overrides(CONFIG, {key: value})


def test_a_setting_given_twice_is_refused():
    with pytest.raises(ConfigError, match=r"ppo.epochs is given twice"):
        apply_overrides(CONFIG, {"ppo.epochs": 2, "ppo": {"epochs": 3}})
    with pytest.raises(ConfigError, match=r"given .*as a value"):
        apply_overrides(CONFIG, {"ppo": 2, "ppo.epochs": 3})


def test_differences_name_the_keys():
    one = {"a": 1, "b": {"c": [1, 2], "d": 3}}
    assert find_differences(one, one) == {}
    assert find_differences(one, {"a": 2, "b": {"c": [1, 2]}, "e": 5}) == {
        "a": (1, 2), "b.d": (3, None), "e": (None, 5),
    }  # fmt: skip


@pytest.mark.parametrize("preset", TASKS)
def test_configs_survive_json(preset):
    data = json.loads(json.dumps(to_dict(TASKS[preset])))
    assert from_dict(TaskConfig, data) == TASKS[preset]


@dataclass(frozen=True)
class Inner:
    size: int = 1
    pair: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    limit: float | None = 2.0
    name: str = "x"
    on: bool = False


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"inner": {"sise": 3}}, r"config\.inner: unknown key 'sise'.*'size'"),
        ({"inner": {"size": 2.5}}, r"config\.inner\.size: expected int, got 2\.5"),
        ({"inner": {"size": True}}, r"expected int, got True"),
        ({"inner": {"pair": [1]}}, r"pair: expected 2 values, got 1"),
        ({"inner": {"pair": 3}}, r"pair: expected a list"),
        ({"inner": 3}, r"config\.inner: expected a table of settings"),
        ({"name": 3}, r"config\.name: expected str"),
        ({"limit": "low"}, r"config\.limit: expected float"),
    ],
)
def test_bad_configs_are_explained(data, words):
    with pytest.raises(ConfigError, match=words):
        from_dict(Outer, data)


def test_missing_keys_take_defaults_and_integers_become_floats():
    made = from_dict(Outer, {"limit": 3, "inner": {"pair": [1, 2]}})
    assert made == Outer(inner=Inner(pair=(1.0, 2.0)), limit=3.0)
    assert isinstance(made.limit, float)
    assert from_dict(Outer, {"limit": None}).limit is None


def test_a_flat_config_as_flags_reads_back():
    @dataclass(frozen=True)
    class Flat:
        seeds: tuple[int, ...] = (1,)
        fast: bool = True
        slow_down: bool = False
        name: str = "x"

    assert to_flags(Flat()) == []
    given = Flat(seeds=(3, 4), fast=False, slow_down=True, name="y")
    words = to_flags(given)
    assert words == ["--seeds", "3", "4", "--no-fast", "--slow-down", "--name", "y"]
    tyro = pytest.importorskip("tyro", reason="the command line is not installed")
    assert tyro.cli(Flat, args=words) == given


def test_plain_data_is_a_copy():
    task = TASKS["laptop"]
    to_dict(task)["rewards"]["weights"]["torques"] = "changed"
    assert task.rewards.weights["torques"] == -1e-5


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("ppo.epochs", {}, "ppo.epochs is a single value"),
        ("task.rewards.weights.torques", {}, "torques is a single value"),
        ("task.rewards.weights.torques.x", 1, "torques is a single value"),
        ("ppo.gamma", 10**400, "too large for a number"),
        ("ppo.steps", 10**400, "ppo.steps must be from 1 to 100000, got 1000"),
        ("ppo", [], "ppo is a group of settings"),
    ],
)
def test_values_where_groups_belong_and_the_reverse_are_refused(key, value, message):
    with pytest.raises(InputError, match=message):
        make_config("laptop", "prism", overrides={key: value})


@pytest.mark.parametrize("data", [None, [], 3, "x", {"kind": "manipulation"}, {"kind": []}, {}])
def test_what_is_no_config_of_the_domain_is_refused(data):
    with pytest.raises(ConfigError):
        DOMAINS["locomotion"].read_config(data, "config.json")
