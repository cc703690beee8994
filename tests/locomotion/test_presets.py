"""Presets and arms of learning to walk."""

import pytest

from prism_motor.locomotion.domain import LOCOMOTION
from prism_motor.locomotion.observations import resolve_bypass
from prism_motor.locomotion.presets import (
    PRESETS,
    arm_names,
    control_of,
    make_config,
    matched_actor,
    observation_size,
)
from prism_motor.nn import ACTORS, build_actor, count_parameters
from prism_motor.runs import ConfigError, from_dict, to_dict


def count(config):
    return count_parameters(build_actor(config.actor, *observation_size(config.task)))


def test_arms_are_the_actors_the_larger_mlp_and_a_matched_control_of_each():
    assert arm_names() == [
        "mlp", "mlp-large",
        "mlp-matched", "mlp-matched-residual", "mlp-matched-residual-gated", "mlp-matched-after",
        "prism", "prism-residual", "prism-residual-gated", "prism-after",
    ]  # fmt: skip
    assert [control_of(actor) for actor in ("prism", "prism-residual", "mine")] == [
        "mlp-matched", "mlp-matched-residual", "mlp-matched-mine",
    ]  # fmt: skip
    assert matched_actor("mlp-matched-residual") == "prism-residual"
    assert matched_actor("mlp-large") is None


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("arm", "control"),
    [
        ("prism", "mlp-matched"),
        ("prism-residual", "mlp-matched-residual"),
        ("prism-residual-gated", "mlp-matched-residual-gated"),
        ("prism-after", "mlp-matched-after"),
    ],
)
def test_a_control_has_the_parameters_of_what_it_matches(preset, arm, control):
    sizes = [count(make_config(preset, name)) for name in (arm, control)]
    assert abs(sizes[1] / sizes[0] - 1) <= 1e-3
    assert make_config(preset, control).actor.name == "mlp"


def test_the_fade_in_is_the_presets_where_an_actor_has_one():
    fades = {arm: getattr(make_config("laptop", arm).actor, "warmup", None) for arm in ACTORS}
    assert fades == {
        "mlp": None, "prism": 0, "prism-residual": 150, "prism-residual-gated": 0,
        "prism-after": 150,
    }  # fmt: skip


def test_a_control_is_matched_to_the_bypass_too():
    overrides = {"actor.bypass": ["command", "clock"]}
    prism, control = (
        make_config("laptop", arm, overrides=overrides) for arm in ("prism", "mlp-matched")
    )
    assert prism.actor.bypass == ("command", "clock")  # what is saved
    inputs, outputs = observation_size(prism.task)
    resolved = resolve_bypass(prism.actor, prism.task)
    size = count_parameters(build_actor(resolved, inputs, outputs))
    # 25 inputs leave two factors of 96 and enter the trunk's first layer of 256.
    assert size == count(make_config("laptop", "prism")) + 25 * (256 - 2 * 96)
    assert count(control) == pytest.approx(size, rel=1e-3)


def test_a_control_is_matched_to_the_overridden_task_and_actor():
    for overrides in ({}, {"task.observations.actor_frames": 9}, {"actor.degree": 3}):
        prism = make_config("laptop", "prism", overrides=overrides)
        control = make_config("laptop", "mlp-matched", overrides=overrides)
        inputs, _ = observation_size(prism.task)
        assert inputs == prism.task.observations.actor_frames * 47
        assert count(control) == pytest.approx(count(prism), rel=1e-3)


def test_the_config_of_the_run_records_the_result():
    config = make_config(
        "laptop", "prism", seed=4, name="cubic", overrides={"actor.degree": 3, "updates": 7}
    )
    assert (config.arm, config.seed, config.updates, config.actor.degree) == ("cubic", 4, 7, 3)
    assert from_dict(type(config), to_dict(config)) == config
    for key in ("seed", "arm", "preset", "kind"):
        with pytest.raises(ConfigError, match="names the run"):
            make_config("laptop", "prism", overrides={key: 1})


def test_the_warmup_of_the_residual_actor_is_the_presets():
    assert make_config("paper", "prism-residual").actor.warmup == 500
    assert make_config("laptop", "prism-residual").actor.warmup == 150
    assert make_config("laptop", "prism").actor.warmup == 0


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"preset 'labtop'.*Did you mean 'laptop'"):
        make_config("labtop", "prism")
    with pytest.raises(ValueError, match=r"arm 'prsm'.*Did you mean 'prism'"):
        make_config("laptop", "prsm")
    with pytest.raises(ConfigError, match=r"Unknown setting 'actor.gate_init'.*actor.hidden"):
        make_config("laptop", "mlp", overrides={"actor.gate_init": 0.5})


@pytest.mark.parametrize(
    ("old", "new"),
    [("gated", "prism"), ("residual", "prism-residual"), ("mlp-larger", "mlp-matched")],
)
def test_former_names_of_arms_make_the_same_run(old, new):
    assert LOCOMOTION.make_config("laptop", old) == LOCOMOTION.make_config("laptop", new)
