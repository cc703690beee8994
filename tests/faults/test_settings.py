"""Settings of every shape: taken as they are meant, or refused with a message."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_motor._checks import PrismError
from prism_motor._ranges import Bounds, field_hints
from prism_motor.domains import DOMAINS
from prism_motor.runs import to_dict
from prism_motor.train import session

from .sizes import cases, fuzz
from .values import SMALL, VALUES, base

KINDS = ("locomotion", "manipulation")


def settings_of(kind):
    return st.tuples(st.sampled_from(base(kind)[1]), VALUES)


def assert_written_and_read(config):
    """What was accepted is the same after being written as strict JSON and read again."""
    text = json.dumps(to_dict(config), allow_nan=False)
    assert DOMAINS[config.kind].read_config(json.loads(text)) == config


def override(kind, key, value):
    """Return the settings with one override, or ``None`` if it is refused."""
    domain = DOMAINS[kind]
    try:
        made = domain.make_config(
            domain.default_preset, "prism", overrides={**SMALL[kind], key: value}
        )
    except PrismError:
        return None
    assert_written_and_read(made)
    return made


def read_changed(kind, key, value, how):
    """Return the settings of a config.json with one change, or ``None`` if it is refused."""
    data = json.loads(json.dumps(to_dict(base(kind)[0])))
    *groups, last = key.split(".")
    table = data
    for group in groups:
        table = table.setdefault(group, {})
    if how == "delete":
        table.pop(last, None)
    elif how == "whole":
        data = value
    else:
        table[last] = value
    try:
        made = DOMAINS[kind].read_config(json.loads(json.dumps(data)))
    except PrismError:
        return None
    assert_written_and_read(made)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_overrides_are_taken_or_refused(kind):
    @fuzz(300, 4000)
    @given(settings_of(kind))
    def check(setting):
        override(kind, *setting)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_config_files_are_taken_or_refused(kind):
    @fuzz(300, 4000)
    @given(settings_of(kind), st.sampled_from(["set"] * 6 + ["delete", "whole"]))
    def check(setting, how):
        read_changed(kind, *setting, how)

    check()


NONSENSE = {
    "locomotion": [
        ("ppo.gamma", -1), ("ppo.gamma", 1.5), ("ppo.clip", 0), ("ppo.clip", 1e30),
        ("ppo.learning_rate", 1e9), ("ppo.epochs", {}), ("ppo.epochs", 1e30),
        ("ppo.decay_samples", 0), ("ppo.value_weight", -1), ("ppo.entropy_weight", -1),
        ("ppo.initial_std", 1e30),
        ("ppo.final_learning_rate", -1), ("critic_hidden", []), ("critic_hidden", [0, 0, 0]),
        ("critic_hidden", [-1]), ("actor.hidden", []), ("actor.hidden", [0]),
        ("actor.degree", 10**6), ("actor.gate_init", 1e30), ("actor.bound", -1.0),
        ("actor.warmup", -1), ("envs", 0),
        ("envs", 10**30), ("seed", -1), ("threads", 10**30), ("task.gait.offsets", [0.0]),
        ("task.gait.offsets", []), ("task.gait.amplitude", 1e30), ("task.gait.cycle", 1e-300),
        ("task.gait.double_support", -1), ("task.randomisation.mass_scale", 1e20),
        ("task.randomisation.base_mass", [1e20, 1e20]), ("task.randomisation.base_mass", [-900, 0]),
        ("task.randomisation.action_noise", -1), ("task.randomisation.friction", [0, 1]),
        ("task.observations.noise", -1), ("task.observations.joint_noise", -0.1),
        ("task.observations.mass_scale", 1e20), ("task.observations.command_scale", 1e30),
        ("task.terminations.duration", -1), ("task.terminations.duration", 1e30),
        ("task.terminations.height", 1e30), ("task.commands.forward", [-1e30, 1e30]),
        ("task.commands.heading_gain", -1), ("task.rewards.weights.torques", 1e30),
        ("task.rewards.weights.torques", {}), ("task.rewards.weights.torques.x", 1),
        ("task.rewards.foot_height", -1), ("task.start_height", 1e30), ("task.robot", "../../x"),
        ("task.simulation.timestep", 10.0), ("task.kind", "../x"), ("plugins", ["../x"]),
        ("plugins", [""]), ("plugins", "os"),
    ],
    "manipulation": [
        ("network.widths", []), ("network.widths", [0]), ("network.image_size", 10**30),
        ("network.horizon", 0), ("optimiser.learning_rate", 1e9), ("optimiser.betas", [1.0, 1.0]),
        ("optimiser.betas", [-1, 0.9]), ("optimiser.weight_decay", -1), ("optimiser.warmup", -1),
        ("optimiser.gradient_norm", 0), ("batch", 0), ("episodes", 0), ("log_every", 10**30),
        ("conditioner.degree", 10**6), ("conditioner.latent", -1), ("task.state", -1),
        ("device", "nonsense"), ("demos", "a\0b"), ("network.widths", [3]), ("task.name", "../x"),
        ("network.inference_steps", 500), ("network.horizon", 13), ("conditioner.interaction", "x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [(kind, key, value) for kind, pairs in NONSENSE.items() for key, value in pairs],
)
def test_nonsense_is_refused_before_a_folder_is_made(kind, key, value, tmp_path):
    domain = DOMAINS[kind]

    def start():
        changes = {**SMALL[kind], key: value}
        made = domain.make_config(domain.default_preset, "prism", overrides=changes)
        session.start(made, tmp_path / "run")

    with pytest.raises(PrismError) as refused:
        start()
    assert len(str(refused.value)) < 1500
    assert not (tmp_path / "run").exists()


def test_a_learning_rate_that_diverges_is_allowed():
    assert override("locomotion", "ppo.learning_rate", 10.0).ppo.learning_rate == 10.0


# Values at the edge of their range: the real trainer is made, or refuses ------------------------


def edges(kind):
    """All numbers of a run, each at the lowest and at the highest value of its range."""

    def walk(config, prefix=""):
        for name, hint in field_hints(type(config)).items():
            value = getattr(config, name)
            if hasattr(value, "__dataclass_fields__"):
                yield from walk(value, f"{prefix}{name}.")
            for bounds in [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Bounds)]:
                tiny = (bounds.high - bounds.low) * 1e-6
                low = bounds.low + tiny if bounds.low_open else bounds.low
                high = bounds.high - tiny if bounds.high_open else bounds.high
                yield from ((f"{prefix}{name}", edge, value) for edge in (low, high))

    for key, edge, value in walk(base(kind)[0]):
        if isinstance(value, tuple):
            yield key, [edge] * len(value)
        elif not isinstance(value, dict):
            yield key, edge


def is_tiny(config):
    """Whether a trainer of these settings fits a test."""
    task = config.task
    widths = [*config.critic_hidden, *config.actor.hidden, config.actor.latent]
    return (
        config.envs * config.ppo.steps <= 1000
        and max(widths) <= 1000
        and max(task.observations.actor_frames, task.observations.critic_frames) <= 50
        and config.threads == 1
    )


def test_trainers_are_made_or_refused_at_the_edges_of_all_ranges(tmp_path):
    found = list(edges("locomotion"))
    assert len(found) > 100
    made = started = 0
    step = len(found) // cases(20, len(found))
    for number, (key, value) in enumerate(found[::step]):
        config = override("locomotion", key, value)
        if config is None or not is_tiny(config):
            continue
        made += 1
        try:
            session.start(config, tmp_path / str(number))
        except PrismError:
            continue
        started += 1
    assert made > 10
    assert started > 8
