"""From a run folder to an export: policy, contract, model and the runner for them."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.export import export_onnx, runner
from prism_motor.locomotion.contract import make_contract
from prism_motor.locomotion.observations import observation_size
from prism_motor.locomotion.policy import WalkingPolicy, load_policy
from prism_motor.runs import Run, collect_provenance, to_dict
from prism_motor.runs.atomic import atomic_folder, write_json, write_text
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.layout import EXPORT
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import scene_xml


@dataclass(frozen=True)
class Latency:
    """Time of one inference, batch of one, one thread."""

    median: float
    """Half of the calls are faster, s."""
    percentile99: float
    """99 % of the calls are faster, s."""


def export_run(run: Path, out: Path | None = None, step: int | None = None) -> Path:
    """Write an export of a run and check that it can be read back.

    Args:
        run: The run folder.
        out: Folder to write, ``RUN/export`` by default; an existing export is replaced.
        step: Which checkpoint; the newest by default.
    """
    try:
        import onnxruntime  # noqa: F401 - fail before the slow part
    except ImportError as error:
        raise missing_extra("prism export", "deploy", error) from error
    target = out or run / EXPORT
    if target.exists() and not _replaceable(target):
        raise InputError(f"{target} exists and is not an export. Choose another folder with --out.")
    policy = load_policy(run, step)
    contract = make_contract(policy.config.task, _provenance(run, policy))
    with atomic_folder(target) as temporary:
        _write(policy, contract, temporary)
        try:
            runner.load_export(temporary)
        except runner.RunnerError as error:
            raise InputError(f"{run} cannot be exported for a robot. {error}") from error
    return target


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / runner.CONTRACT).exists() or not any(folder.iterdir()))


def _write(policy: WalkingPolicy, contract: dict[str, Any], folder: Path) -> None:
    task = policy.config.task
    inputs, _ = observation_size(task)
    policy_file = export_onnx(
        policy.module,
        folder / runner.POLICY,
        torch.zeros(1, inputs),
        input_names=["observation"],
        output_names=["action"],
        metadata={"contract": contract},
    )
    model_file = folder / runner.MODEL
    write_text(model_file, scene_xml(make_robot(task.robot), timestep=task.simulation.timestep))
    # The policy carries the contract; only then can the contract name the policy's file.
    bound = runner.bind(contract, policy_file.read_bytes(), model_file.read_bytes())
    write_json(folder / runner.CONTRACT, bound)
    shutil.copyfile(runner.__file__, folder / "runner.py")


def _provenance(run: Path, policy: WalkingPolicy) -> dict[str, Any]:
    keys = ("created", "prism", "commit", "uncommitted_changes", "packages")
    exported = collect_provenance()
    trained = Run.open(run).provenance()
    return {
        "policy_sha256": hash_weights(policy.module.state_dict()),
        "checkpoint": policy.step,
        "trained": {key: trained.get(key) for key in keys},
        "exported": {key: exported[key] for key in keys},
        "config": to_dict(policy.config),
    }


def measure_latency(export: Path, calls: int = 1000) -> Latency:
    """Time single inferences of an export in onnxruntime."""
    session = runner.open_policy(export / runner.POLICY)
    entry = session.get_inputs()[0]
    feed = {entry.name: np.zeros((1, entry.shape[1]), dtype=np.float32)}
    times = np.empty(calls)
    for _ in range(calls // 10):
        session.run(None, feed)
    for i in range(calls):
        start = time.perf_counter()
        session.run(None, feed)
        times[i] = time.perf_counter() - start
    median, percentile99 = np.percentile(times, (50, 99))
    return Latency(float(median), float(percentile99))
