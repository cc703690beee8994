"""Jobs as jobs of Slurm, which wait in its queue one by one and go on after a preemption."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.locks import note_in
from prism_motor.campaigns.places.node import Ended, NodeJob, Order
from prism_motor.runs.layout import LOGS

_QUEUED = 32
"""Jobs in the queue at a time unless the user gives a number; sites have limits."""
_DAY = 24 * 60
_REQUEUES = 1000
"""Time limits after which a job goes on; in between it saves, so this need not be small."""


class SlurmTask:
    """What runs inside a Slurm job.

    Args:
        order: The job.
    """

    def __init__(self, order: Order) -> None:
        self.order = order

    def __call__(self) -> Ended:
        """Do the job."""
        self._job = NodeJob(self.order)
        return self._job.run()

    def checkpoint(self) -> Any:
        """Let the child save at a preemption or time limit; return what is queued again."""
        from submitit.helpers import DelayedSubmission

        self._job.stop()
        return DelayedSubmission(SlurmTask(self.order))


class SlurmHandle:
    """A job in Slurm's queue.

    Args:
        order: The job.
        job: submitit's.
    """

    def __init__(self, order: Order, job: Any) -> None:
        self.order, self.job = order, job
        self.code: int | None = None
        self._stopped = False

    def poll(self) -> int | None:
        """Return its exit code; raise if the machine cannot do jobs at all."""
        if self.code is None and self.job.done():
            self.code = self._result()
        return self.code

    def _result(self) -> int:
        error = self.job.exception()
        if error is None:
            ended: Ended = self.job.result()
            if ended.problem:
                self.code = ended.code  # stopping the others must not hear of it again
                raise CampaignError(f"{self.order.title}: {ended.problem}")
            return ended.code
        if self._stopped:
            return 128 + signal.SIGTERM
        with self.order.log.open("a") as log:
            note_in(log, f"Slurm job {self.job.job_id} is {self.job.state}: {error}")
        return -signal.SIGKILL

    def stop(self, number: int) -> None:
        """Cancel it: Slurm terminates the child, which saves, and drops a job that waits."""
        self._stopped = True
        self.job.cancel(check=False)

    def kill(self) -> None:
        """Leave it to Slurm, which kills what it has cancelled."""
        self.code = self.code or 128 + signal.SIGTERM


class SlurmPlace:
    """The queue of a Slurm site.

    Args:
        folder: The campaign's folder.
        gpus: GPUs per job; default: one for jobs on cuda, none for others.
        parameters: Of the jobs, by the names of ``sbatch``: partition, time, account, ...
        cluster: submitit's executor: ``slurm``, or ``local`` to try it without Slurm.
    """

    remote = True
    slots = _QUEUED

    def __init__(
        self,
        folder: Path,
        *,
        gpus: float | None = None,
        parameters: Mapping[str, str] | None = None,
        cluster: str = "slurm",
    ) -> None:
        if gpus is not None and gpus != int(gpus):
            raise InputError(f"--gpus: Slurm gives whole GPUs, got {gpus}. Use --on ray.")
        try:
            import submitit
            from submitit.core.utils import FailedJobError, FailedSubmissionError
        except ImportError as error:
            raise missing_extra("--on slurm", "slurm", error) from error
        try:
            self.executor = submitit.AutoExecutor(
                folder=folder / LOGS / "slurm",
                cluster=cluster,
                **{f"{cluster}_max_num_timeout": _REQUEUES},
            )
            self.executor.update_parameters(
                timeout_min=_DAY,
                **{f"slurm_{key}": value for key, value in (parameters or {}).items()},
            )
        except (NameError, RuntimeError, ValueError) as error:  # as submitit raises them
            raise InputError(f"--on slurm cannot be used here: {error}") from error
        # As submitit says that sbatch failed, or that its answer has no number of a job.
        self._refusals = (FailedJobError, FailedSubmissionError)
        self.gpus = gpus

    def __enter__(self) -> SlurmPlace:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def start(self, order: Order, log: IO[str]) -> SlurmHandle:
        """Submit a job."""
        order = order.with_gpus(self.gpus)
        self.executor.update_parameters(
            name=f"prism-{order.title.replace('/', '-')}",
            cpus_per_task=order.threads,
            gpus_per_node=int(order.gpus),
        )
        try:
            job = self.executor.submit(SlurmTask(order))
        except self._refusals as error:
            raise CampaignError(
                f"{order.title}: Slurm did not take this job: {error} Its parameters are those of "
                "--slurm, e.g. --slurm partition=gpu account=mine time=240."
            ) from error
        return SlurmHandle(order, job)
