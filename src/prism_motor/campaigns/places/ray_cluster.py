"""Jobs as tasks of a Ray cluster, which retries those whose worker or machine has died."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from typing import IO, Any

from prism_motor._console import count, note
from prism_motor._extras import missing_extra
from prism_motor._processes import stop_signals
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.locks import is_locked
from prism_motor.campaigns.places.node import Ended, NodeJob, Order

_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
"""Of a new cluster on this machine: nothing is reported, and jobs are not starved by other work."""


def work(order: Order) -> Ended:
    """Do a job inside a Ray worker; ``ray.cancel`` interrupts it as Ctrl-C would."""
    job = NodeJob(order)
    try:
        return job.run()
    except KeyboardInterrupt:
        job.stop()
        raise


class RayHandle:
    """A task.

    Args:
        ray: The package.
        order: The job.
        task: Reference to its result.
    """

    def __init__(self, ray: Any, order: Order, task: Any) -> None:
        self.ray, self.order, self.task = ray, order, task
        self.code: int | None = None
        self._forced = False

    def poll(self) -> int | None:
        """Return its exit code; raise if the cluster cannot do jobs at all."""
        if self.code is None:
            ready, _ = self.ray.wait([self.task], timeout=0)
            self.code = self._result() if ready else None
        return self.code

    def _result(self) -> int | None:
        errors = self.ray.exceptions
        try:
            ended: Ended = self.ray.get(self.task)
        except (errors.TaskCancelledError, errors.WorkerCrashedError):
            # The task is over as soon as it is cancelled; its child may still be saving.
            return None if is_locked(self.order.log) and not self._forced else 128 + signal.SIGINT
        except errors.RayError as error:
            self.code = 2  # it is over: stopping the others must not hear of it again
            raise CampaignError(
                f"{self.order.title}: the cluster could not do this job: {error}\nAll machines "
                "need the same prism-motor, Python and torch, and the campaign's folder."
            ) from error
        if ended.problem:
            self.code = ended.code
            raise CampaignError(f"{self.order.title}: {ended.problem}")
        return ended.code

    def stop(self, number: int) -> None:
        """Cancel it: its child saves and ends, a job that waits is dropped."""
        self.ray.cancel(self.task)

    def kill(self) -> None:
        """End its worker, and with it the child."""
        if not self._forced:
            self._forced = True
            self.ray.cancel(self.task, force=True)


class RayPlace:
    """A Ray cluster: the one of this machine, else a new one here, or that at an address.

    Args:
        address: ``ray://HOST:PORT``; ``None``: the cluster that ``RAY_ADDRESS`` names, else the one
            that runs on this machine, else a new one.
        gpus: GPUs per job, fractions allowed; default: one for jobs on cuda, none for others.
    """

    remote = True

    def __init__(self, address: str | None = None, *, gpus: float | None = None) -> None:
        try:
            import ray
            import ray.exceptions
        except ImportError as error:
            raise missing_extra("--on ray", "ray", error) from error
        self.ray, self.address, self.gpus = ray, address, gpus
        self._warned: set[tuple[int, float]] = set()

    def __enter__(self) -> RayPlace:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        before = {number: signal.getsignal(number) for number in stop_signals()}
        # Logs are files in the campaign's folder; a client decides nothing about the cluster.
        options = {} if self.address else {"log_to_driver": False, "include_dashboard": False}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters is raised
                self.ray.init(self.address, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray raises bare ones where a start takes too long
            raise CampaignError(
                f"Cannot connect to Ray at {self.address or 'this machine'}: "
                f"{str(error).rstrip('.')}. Start it with ray start --head, or see docs/cluster.md."
            ) from error
        for number, handler in before.items():  # Ray handles termination in its own way
            signal.signal(number, handler)
        self._work = self.ray.remote(max_retries=-1, retry_exceptions=False)(work)
        return self

    def __exit__(self, *error: object) -> None:
        self.ray.shutdown()

    @property
    def slots(self) -> int:
        """Number of CPUs of the cluster as it is now."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def start(self, order: Order, log: IO[str]) -> RayHandle:
        """Queue a task."""
        order = order.with_gpus(self.gpus)
        self._warn(order)
        task = self._work.options(
            name=order.title, num_cpus=order.threads, num_gpus=order.gpus
        ).remote(order)
        return RayHandle(self.ray, order, task)

    def _warn(self, order: Order) -> None:
        """Say once that no machine is large enough: such a job would wait without a word."""
        needs = (order.threads, order.gpus)
        if needs in self._warned or any(_has_room(node, order) for node in self.ray.nodes()):
            return
        self._warned.add(needs)
        note(
            f"{order.title} needs {count(order.threads, 'CPU')} and {order.gpus:g} GPUs, and no "
            "machine of the cluster has as many: it waits until one joins. Otherwise stop with "
            "Ctrl-C and give fewer --gpus, or override threads or device."
        )


def _has_room(node: dict[str, Any], order: Order) -> bool:
    """Return whether an idle machine could do a job."""
    resources = node["Resources"] if node["Alive"] else {}
    return resources.get("CPU", 0) >= order.threads and resources.get("GPU", 0) >= order.gpus
