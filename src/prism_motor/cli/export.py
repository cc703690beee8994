"""``prism export``: a run as files that a robot can use."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from prism_motor._errors import InputError


def export(
    run: Positional[Path],
    out: Path | None = None,
    checkpoint: int | None = None,
) -> None:
    """Write the policy of a run as files that others can use.

    A walking policy becomes ONNX, with its contract, the robot's model and a runner. A
    manipulation policy becomes a pretrained folder of LeRobot, for --policy.path of its commands.

    Args:
        run: The run folder, or the name of a policy that comes with prism.
        out: Folder to write; default: RUN/export, for manipulation RUN/pretrained. An export that
            is there is replaced.
        checkpoint: Step of the checkpoint to export; default: the newest.
    """
    from prism_motor.runs import Run

    if Run.open(run).config.get("kind") == "manipulation":
        from prism_motor.manipulation.diffusion.policy import export_policy, load_policy

        pretrained = export_policy(load_policy(run, checkpoint), out or run / "pretrained")
        print(f"{pretrained}  Use it with: lerobot-eval --policy.path={pretrained} ...")
        return
    from prism_motor.cli._shipped import writable
    from prism_motor.export import ExportError
    from prism_motor.locomotion.export import export_run, measure_latency
    from prism_motor.runs.shipped import resolve

    try:
        folder = export_run(resolve(run) if out else writable(run), out, checkpoint)
    except ExportError as error:
        raise InputError(str(error)) from error
    latency = measure_latency(folder)
    for file in sorted(folder.iterdir()):
        print(f"{file}  {file.stat().st_size / 1e3:.0f} kB")
    print(
        f"inference {1e6 * latency.median:.0f} us median, {1e6 * latency.percentile99:.0f} us "
        "99th percentile (onnxruntime, batch of one, one thread)"
    )
    print(f"Try it with: prism sim2sim {folder}")
