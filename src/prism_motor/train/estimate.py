"""What a run will take, from a measurement of a few seconds: samples, memory, hours.

A domain cuts a run into stretches whose updates cost alike, and names for each a smaller run to
measure it by (:meth:`prism_motor.domains.Domain.stretches`).
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._devices import resolve_device
from prism_motor.domains import DOMAINS

if TYPE_CHECKING:
    from prism_motor.protocols import Stretch
    from prism_motor.train.config import RunConfig

_GIGABYTE = 1e9


@dataclass(frozen=True)
class Rates:
    """What was measured about a run."""

    seconds: tuple[float, ...]
    """Seconds per update of each stretch, at the run's full size."""
    core_seconds: tuple[float, ...]
    """Processor time of the same, which other work on the machine changes little."""
    memory: float
    """Bytes of the largest stretch."""

    def time(self, config: RunConfig) -> float:
        """Return the seconds that a run of the same kind takes; it may be longer or shorter."""
        return _sum(config, self.seconds)

    def core_time(self, config: RunConfig) -> float:
        """Return its processor time in seconds."""
        return _sum(config, self.core_seconds)


def _sum(config: RunConfig, rates: tuple[float, ...]) -> float:
    found = DOMAINS[config.kind].stretches(config)
    return sum(one.updates * rate for one, rate in zip(found, rates, strict=False))


@dataclass(frozen=True)
class CostEstimate:
    """What one or more runs will take."""

    samples: int
    """Samples that are learned from."""
    physics: int
    """Steps of physics; 0: the runs learn from data."""
    memory: float
    """Bytes of a process."""
    seconds: float
    """Time of all runs, one after another."""
    core_seconds: float
    """Processor time of all cores."""
    gpu_seconds: float
    """Time of all GPUs that they use."""

    def numbers(self) -> dict[str, str]:
        """Return its numbers as text, by what they are."""
        return {
            "samples": f"{self.samples:,}",
            "physics steps": f"{self.physics:,}" if self.physics else "none",
            "memory of a process, GB": f"{self.memory / _GIGABYTE:.1f}",
            "core-hours": _hours(self.core_seconds),
            "GPU-hours": _hours(self.gpu_seconds),
        }


def measure(config: RunConfig, seconds: float, processes: int = 1) -> Rates:
    """Train for about so many seconds without writing anything.

    Args:
        config: The run.
        seconds: How long; at least two updates of every stretch are done.
        processes: Processes that share the run, of which one is measured.
    """
    domain = DOMAINS[config.kind]
    config = domain.prepare(replace(config, device=resolve_device(config.device)))
    config = domain.share(config, processes)
    found = domain.stretches(config)
    measured = [_measure(config.kind, one, seconds / len(found)) for one in found]
    rates, core_rates, memory = zip(*measured, strict=True)
    return Rates(rates, core_rates, max(memory))


def _measure(kind: str, stretch: Stretch, seconds: float) -> tuple[float, float, float]:
    """Return seconds and processor time per update, and bytes, of a stretch at full size."""
    domain, before = DOMAINS[kind], _resident()
    trainer = domain.rehearse(stretch.config)
    trainer.update()  # the first one allocates and compiles
    began, began_cpu, first = time.perf_counter(), time.process_time(), trainer.updates
    while trainer.updates == first or time.perf_counter() - began < seconds:
        trainer.update()
    done = (trainer.updates - first) / stretch.scale
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    grown = max(0, _resident() - before)
    memory = before + grown * stretch.memory_scale + domain.reserved(trainer)
    return took / done, took_cpu / done, memory


def estimate_run(
    config: RunConfig, rates: Rates, evaluation: float = 0.0, processes: int = 1
) -> CostEstimate:
    """Return what a run takes.

    Args:
        config: The run.
        rates: What was measured about it.
        evaluation: Seconds of its evaluations.
        processes: Processes that share the run, each on cores or a GPU of its own.
    """
    samples, physics = DOMAINS[config.kind].size(config)
    took = rates.time(config) + evaluation
    busy = rates.core_time(config) / rates.time(config)  # cores, on average
    device: Any = resolve_device(config.device)
    gpu = took * processes if device.startswith("cuda") else 0.0
    return CostEstimate(samples, physics, rates.memory, took, took * busy * processes, gpu)


def add(estimates: list[CostEstimate]) -> CostEstimate:
    """Return what several runs take together."""
    return CostEstimate(
        samples=sum(one.samples for one in estimates),
        physics=sum(one.physics for one in estimates),
        memory=max((one.memory for one in estimates), default=0.0),
        seconds=sum(one.seconds for one in estimates),
        core_seconds=sum(one.core_seconds for one in estimates),
        gpu_seconds=sum(one.gpu_seconds for one in estimates),
    )


def _resident() -> float:
    """Return the memory of this process in bytes; where the system does not say, its largest."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(largest if sys.platform == "darwin" else largest * 1024)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.2f}" if seconds < 36_000 else f"{seconds / 3600:,.0f}"
