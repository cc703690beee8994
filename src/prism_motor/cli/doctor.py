"""``prism doctor``: does the GPU engine work here? One report, to paste into an issue."""

from __future__ import annotations

from typing import Annotated

from prism_motor._console import count
from prism_motor._devices import Device, resolve_device
from prism_motor._ranges import between
from prism_motor.cli.about import collect


def doctor(device: Device = "auto", envs: Annotated[int, between(0, 1_000_000)] = 0) -> None:
    """Compare the gpu engine with MuJoCo, resume with it and measure it; takes a minute or two.

    Exits with status 1 if something is not as promised.

    Args:
        device: Where the engine computes.
        envs: Robots whose speed is measured; 0: 4096 on cuda, 256 on the cpu.
    """
    from prism_motor.locomotion.doctor import examine
    from prism_motor.sim.engines import resolve_engine

    device = resolve_device(device)
    resolve_engine("gpu", device)  # which may be missing: no report about nothing
    print(f"prism doctor --device {device}\n")
    for section in collect().values():
        for key, value in section.items():
            if value not in ("not installed", "not set"):
                print(f"{key}: {value}")
    print()
    wrong = 0
    for finding in examine(device, envs):
        verdict = {True: "ok", False: "WRONG", None: "--"}[finding.ok]
        print(f"{verdict:<6} {finding.check}: {finding.result}", flush=True)
        wrong += finding.ok is False
    if wrong:
        print(
            f"\n{count(wrong, 'check')} did not turn out as promised: please open an issue "
            "with this report."
        )
        raise SystemExit(1)
