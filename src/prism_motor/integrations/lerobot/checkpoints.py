"""Which checkpoints fit which policy, and errors for those that do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError, InputTypeError
from prism_motor._extras import missing_extra
from prism_motor.integrations.lerobot.conditioning import ConditionerFields

try:
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.pretrained import PreTrainedPolicy
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error

_HUB_OPTIONS = (
    "force_download",
    "resume_download",
    "proxies",
    "token",
    "cache_dir",
    "local_files_only",
    "revision",
)


class CheckpointMismatchError(InputError):
    """The checkpoint was written by another kind of policy or with another conditioner."""


def check_config(policy: type[PreTrainedPolicy], config: object) -> None:
    """Raise if a config is for another policy."""
    wanted: Any = policy.config_class
    if not isinstance(config, wanted):
        raise InputTypeError(
            f"{policy.__name__} needs a {wanted.__name__}, got {type(config).__name__}. For "
            f"LeRobot's own pathway use {wanted.__name__}(conditioner='linear', ...)."
        )


def config_for_checkpoint(
    policy: type[PreTrainedPolicy],
    path: str | Path,
    config: PreTrainedConfig | None,
    options: dict[str, Any],
) -> PreTrainedConfig:
    """Return the config to load a checkpoint with, or raise if it does not fit.

    Args:
        policy: The class that loads.
        path: Folder or hub name of the checkpoint.
        config: What the user wants to load; ``None`` for the checkpoint's own.
        options: Keyword arguments of ``from_pretrained``.
    """
    hub_options = {name: options[name] for name in _HUB_OPTIONS if name in options}
    saved = PreTrainedConfig.from_pretrained(path, **hub_options)
    wanted = saved if config is None else config
    if not isinstance(saved, ConditionerFields):
        _check_foreign(policy, path, saved, config)
    elif saved.type != policy.name:
        raise CheckpointMismatchError(
            f"{path} holds a policy of type '{saved.type}', but {policy.__name__} loads "
            f"'{policy.name}'. Load it with only --policy.path={path}."
        )
    elif isinstance(wanted, ConditionerFields):
        _check_traits(path, saved.conditioner_traits(), wanted.conditioner_traits())
    return wanted


def _check_foreign(
    policy: type[PreTrainedPolicy],
    path: str | Path,
    saved: PreTrainedConfig,
    config: PreTrainedConfig | None,
) -> None:
    """Accept LeRobot's own checkpoints where the policy is LeRobot's."""
    wanted: Any = policy.config_class
    is_base = isinstance(saved, PreTrainedConfig) and issubclass(wanted, type(saved))
    if is_base and isinstance(config, ConditionerFields) and config.conditioner == "linear":
        return
    expected = f"'{policy.name}'"
    if isinstance(config, ConditionerFields):
        expected += f" with conditioner={config.conditioner}"
    advice = (
        f"Load it with {wanted.__name__}(conditioner='linear', ...), or as '{saved.type}'."
        if is_base
        else f"Load it as '{saved.type}'."
    )
    raise CheckpointMismatchError(
        f"{path} holds a policy of LeRobot's own type '{saved.type}', but {expected} was "
        f"requested: there are no weights for its conditioner. {advice}"
    )


def _check_traits(path: str | Path, found: dict[str, object], expected: dict[str, object]) -> None:
    if found != expected:
        raise CheckpointMismatchError(
            f"{path} holds the conditioner ({_describe(found)}), but ({_describe(expected)}) was "
            f"requested. Load it with only --policy.path={path} (in Python: without config=), "
            "which uses its own conditioner, or train again."
        )


def _describe(traits: dict[str, object]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in traits.items())


def _text(value: object) -> str:
    """Format a value as LeRobot's command line reads it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
