"""From a run folder to an export: policy, contract, model and the runner for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from prism_motor.export import export_onnx, runner
from prism_motor.export.folder import check_export, check_target, copy_runner
from prism_motor.locomotion.contract import make_contract
from prism_motor.locomotion.observations import observation_size
from prism_motor.locomotion.policy import WalkingPolicy, load_policy
from prism_motor.runs import Run, collect_provenance, to_dict
from prism_motor.runs.atomic import atomic_folder, write_json, write_text
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.layout import EXPORT
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import scene_xml


def export_run(run: Path, out: Path | None = None, step: int | None = None) -> Path:
    """Write an export of a run and check that it can be read back.

    Args:
        run: The run folder.
        out: Folder to write, ``RUN/export`` by default; an existing export is replaced.
        step: Which checkpoint; the newest by default.
    """
    target = out or run / EXPORT
    check_target(target)
    policy = load_policy(run, step)
    contract = make_contract(policy.config.task, _provenance(run, policy))
    with atomic_folder(target) as temporary:
        _write(policy, contract, temporary)
        check_export(run, temporary)
    return target


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
    simulation = task.simulation
    scene = scene_xml(
        make_robot(task.robot), timestep=simulation.timestep, solver=simulation.solver
    )
    write_text(model_file, scene)
    # The policy carries the contract; only then can the contract name the policy's file.
    bound = runner.bind(contract, policy_file.read_bytes(), model_file.read_bytes())
    write_json(folder / runner.CONTRACT, bound)
    copy_runner(folder)


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
