"""Gymnasium's MuJoCo environments: which can be trained on, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from prism_motor._checks import InputError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.sim.scene import import_mujoco

EXTRA = "gymnasium"
"""Extra of the package that this domain needs."""


def import_gymnasium() -> Any:
    """Import Gymnasium or name the extra that provides it."""
    try:
        import gymnasium
    except ImportError as error:
        raise missing_extra("prism_motor.gymnasium_control", EXTRA, error) from error
    return gymnasium


def make_env(name: str, **options: Any) -> Any:
    """Make an environment by its id, after checking that its state can be saved.

    Args:
        name: Its id.
        **options: As in ``gymnasium.make``.
    """
    gymnasium = import_gymnasium()
    import_mujoco("prism_motor.gymnasium_control", EXTRA)
    try:
        env = gymnasium.make(name, disable_env_checker=True, **options)
    except gymnasium.error.UnregisteredEnv as error:
        known = [one for one in gymnasium.registry if one.endswith("-v5")]
        check_choice("environment", name, known)
        raise InputError(f"task.env: {error}") from error
    except (gymnasium.error.Error, ImportError) as error:
        raise InputError(f"task.env: {name} cannot be made: {error}") from error
    _check_savable(name, env)
    return env


def _check_savable(name: str, env: Any) -> None:
    """Raise unless all that an environment remembers is known."""
    from gymnasium import spaces, wrappers
    from gymnasium.envs.mujoco import MujocoEnv

    if not isinstance(env.unwrapped, MujocoEnv):
        raise InputError(
            f"task.env: {name} is not simulated by MuJoCo, so its state cannot be saved. Choose "
            "one of Gymnasium's MuJoCo environments, e.g. Hopper-v5."
        )
    for wrapper in layers(env)[:-1]:
        if not isinstance(wrapper, wrappers.TimeLimit | wrappers.OrderEnforcing):
            raise InputError(
                f"task.env: {name} has a wrapper, {type(wrapper).__name__}, whose state cannot be "
                "saved. Register it without."
            )
    for what in ("observation_space", "action_space"):
        space = getattr(env, what)
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise InputError(f"task.env: the {what} of {name} is {space}; one vector is needed.")


def layers(env: Any) -> list[Any]:
    """Return an environment's wrappers, the outermost first, and itself."""
    found = [env]
    while found[-1] is not env.unwrapped:
        found.append(found[-1].env)
    return found


@dataclass(frozen=True)
class EnvFacts:
    """What is known about an environment without stepping it."""

    observations: int
    """Numbers that it shows."""
    actions: int
    """Numbers that it takes."""
    substeps: int
    """Steps of physics per step."""


@lru_cache(maxsize=64)
def env_facts(name: str) -> EnvFacts:
    """Return the sizes of an environment."""
    env = make_env(name)
    try:
        inner = env.unwrapped
        return EnvFacts(env.observation_space.shape[0], env.action_space.shape[0], inner.frame_skip)
    finally:
        env.close()
