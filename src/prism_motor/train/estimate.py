"""What a run will take, from a measurement of a few seconds: samples, memory, hours.

A domain cuts a run into stretches whose updates cost alike, and names for each a smaller run to
measure it by (:meth:`prism_motor.domains.Domain.stretches`). Each run is measured in a process of
its own, as it will have one: so its start is measured as well, and its memory is nobody else's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._checks import BugError, InputError, PrismError
from prism_motor._devices import resolve_device
from prism_motor._workers import WorkerPool
from prism_motor.domains import DOMAINS, domain_of
from prism_motor.runs.configs import to_dict

if TYPE_CHECKING:
    from prism_motor.protocols import Stretch, Trainer
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
    start: float = 0.0
    """Seconds from the start of its process to its first update."""
    core_start: float = 0.0
    """Processor time of the same."""

    def time(self, config: RunConfig) -> float:
        """Return the seconds that all updates of a run take; it may be longer or shorter."""
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
    guessed: float = 0.0
    """Processor time in it that was not measured: that of evaluations."""

    def numbers(self) -> dict[str, str]:
        """Return its numbers as text, by what they are."""
        return {
            "samples": f"{self.samples:,}",
            "physics steps": f"{self.physics:,}" if self.physics else "none",
            "memory of a process, GB": f"{self.memory / _GIGABYTE:.1f}",
            "core-hours": _hours(self.core_seconds),
            "  of evaluations, a guess": _hours(self.guessed),
            "GPU-hours": _hours(self.gpu_seconds),
        }


def measure(config: RunConfig, seconds: float, processes: int = 1) -> Rates:
    """Train for about so many seconds in a new process, without writing anything.

    Args:
        config: The run.
        seconds: How long; at least two updates of every stretch are done.
        processes: Processes that share the run, of which one is measured.
    """
    domain = DOMAINS[config.kind]
    config = domain.prepare(replace(config, device=resolve_device(config.device)))
    config = domain.share(config, processes)
    with WorkerPool[_Rehearsal, Rates](_Rehearser, 1) as pool:
        (done,) = pool.run([_Rehearsal(to_dict(config), seconds, time.monotonic())])
    if done.result is None and done.trace:
        raise BugError(done.trace)
    if done.result is None:
        raise PrismError(f"{config.arm} could not be measured: {done.failure}.")
    return done.result


@dataclass(frozen=True)
class _Rehearsal:
    """What to measure, and since when its process is on its way."""

    settings: dict[str, Any]
    seconds: float
    began: float
    """By a clock that all processes share."""

    def __str__(self) -> str:
        return f"Measuring {self.settings['arm']}"


class _Rehearser:
    """Measures a run in this process, which must be a new one."""

    def __call__(self, job: _Rehearsal) -> Rates:
        free = _free_memory()
        try:
            with limit_memory(free if job.settings["device"] == "cpu" else None):
                return self._measure(job)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
                raise
            raise InputError(
                f"{job} needs more memory than the {(free or 0) / _GIGABYTE:.1f} GB that are free "
                "on this machine. Measure it on the machine that will train it, or give smaller "
                "networks, a smaller batch or fewer environments."
            ) from error

    def _measure(self, job: _Rehearsal) -> Rates:
        domain = domain_of(job.settings)
        config = domain.read_config(job.settings)
        stretches = domain.stretches(config)
        start: tuple[float, float] | None = None
        found = []
        for stretch in stretches:
            before = _resident()
            trainer = domain.rehearse(stretch.config)
            trainer.update()  # the first one allocates and compiles
            ready = time.monotonic() - job.began, time.process_time()
            took, took_cpu, shares = _time_updates(trainer, job.seconds / len(stretches))
            # Loading, building, and what the first update took beyond one of the later ones.
            start = start or (max(0.0, ready[0] - took), max(0.0, ready[1] - took_cpu))
            grown = max(0, _most_resident() - before)
            memory = before + grown * stretch.memory_scale + domain.reserved(config, trainer)
            scale = _scale(stretch, *shares)
            found.append((took * scale, took_cpu * scale, memory))
            del trainer  # before the next one is made
        rates, core_rates, memory = zip(*found, strict=True)
        return Rates(rates, core_rates, max(memory), *(start or ()))


def _scale(stretch: Stretch, learning: float, acting: float) -> float:
    """Return how many times the time of a measured update one of the run takes.

    Args:
        stretch: What was measured.
        learning: Share of gradient steps in it.
        acting: Share of the policy's passes in it.
    """
    more = learning * (stretch.learning_scale * stretch.network_scale - 1)
    return stretch.scale * (1 + more + acting * (stretch.network_scale - 1))


def _time_updates(trainer: Trainer, seconds: float) -> tuple[float, float, tuple[float, float]]:
    """Return seconds and processor time per update, and the shares of learning and acting."""
    began, began_cpu, first = time.perf_counter(), time.process_time(), trainer.updates
    shares = []
    while trainer.updates == first or time.perf_counter() - began < seconds:
        row = trainer.update() or {}
        shares.append([row.get(f"time/{name}", 0.0) for name in ("update", "policy")])
    done = trainer.updates - first
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    learning, acting = (sum(column) / len(shares) for column in zip(*shares, strict=True))
    return took / done, took_cpu / done, (learning, acting)


def tell_scaled(configs: Iterable[RunConfig]) -> str:
    """Say in a sentence what was smaller in the measurements of some runs; empty: nothing."""
    stretches = [one for config in configs for one in DOMAINS[config.kind].stretches(config)]
    told = sorted({one.told for one in stretches if one.told})
    return f"Measured with {', with '.join(told)} and scaled up." if told else ""


def estimate_run(
    config: RunConfig,
    rates: Rates,
    evaluation: float = 0.0,
    processes: int = 1,
    jobs: int = 1,
) -> CostEstimate:
    """Return what a run takes.

    Args:
        config: The run.
        rates: What was measured about it.
        evaluation: Seconds of its evaluations.
        processes: Processes that share the run, each on cores or a GPU of its own.
        jobs: How many processes it takes one after another, of which one trains; all start alike.
    """
    samples, physics = DOMAINS[config.kind].size(config)
    busy = rates.core_time(config) / rates.time(config)  # cores, on average
    took = rates.time(config) + jobs * rates.start + evaluation
    cores = rates.core_time(config) + jobs * rates.core_start + evaluation * busy
    device: Any = resolve_device(config.device)
    gpu = took * processes if device.startswith("cuda") else 0.0
    return CostEstimate(
        samples, physics, rates.memory, took, cores * processes, gpu, evaluation * busy
    )


def add(estimates: list[CostEstimate]) -> CostEstimate:
    """Return what several runs take together."""
    return CostEstimate(
        samples=sum(one.samples for one in estimates),
        physics=sum(one.physics for one in estimates),
        memory=max((one.memory for one in estimates), default=0.0),
        seconds=sum(one.seconds for one in estimates),
        core_seconds=sum(one.core_seconds for one in estimates),
        gpu_seconds=sum(one.gpu_seconds for one in estimates),
        guessed=sum(one.guessed for one in estimates),
    )


@contextmanager
def limit_memory(more: float | None) -> Iterator[None]:
    """Let this process fail rather than take more than so many further bytes, where Linux can."""
    used = _read_kilobytes("/proc/self/status", "VmData")
    if more is None or used is None:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [one for one in (int(used + more), *before) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _free_memory() -> float | None:
    """Return how many bytes of this machine may be taken, where the system says: not the last."""
    found = _read_kilobytes("/proc/meminfo", "MemAvailable")
    return None if found is None else 0.9 * found


def _read_kilobytes(file: str, name: str) -> float | None:
    """Return an entry of a file of Linux in bytes; elsewhere there is none."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return float(found[0]) * 1024 if found else None


def _resident() -> float:
    """Return the memory of this process in bytes; where the system does not say, its largest."""
    found = _read_kilobytes("/proc/self/status", "VmRSS")
    return _most_resident() if found is None else found


def _most_resident() -> float:
    """Return the most memory that this process has had: what an update takes it gives back."""
    found = _read_kilobytes("/proc/self/status", "VmHWM")
    if found is not None:
        return found
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(largest if sys.platform == "darwin" else largest * 1024)


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2f}" if hours >= 0.1 else f"{hours:.3f}"
