"""A process with everything imported, which forks ``prism`` commands: a start costs nothing.

Requests and answers are lines of JSON on stdin and stdout; :mod:`tests.faults.commands` is the
other end. The jobs that campaigns start are forked too.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tests.faults.stops import Operations, Stop

OPERATIONS = "operations.json"
"""What a command that was only counted leaves beside its output."""

_IMPORTS = (
    "prism_motor.cli.campaign", "prism_motor.cli.evaluate", "prism_motor.cli.runs",
    "prism_motor.cli.train", "diffusers.optimization", "jinja2", "mujoco.rollout", "onnxruntime",
    "onnxscript", "safetensors.torch", "scipy.stats", "torch._dynamo", "torch.onnx",
    "torch.utils.tensorboard", "typeguard",
)  # fmt: skip
"""What commands import when they run."""


class Children:
    """The commands that are running."""

    def __init__(self) -> None:
        self.running: set[int] = set()

    def start(
        self, words: list[str], folder: str, out: str, stop: dict[str, Any] | None, job: int
    ) -> int:
        """Fork a command.

        Args:
            words: Arguments of ``prism``.
            folder: Where it is called.
            out: Folder for stdout, stderr and the list of operations.
            stop: Where the command is stopped.
            job: Which job of a campaign is stopped, from one; 0: the command itself.
        """
        pid = os.fork()
        if pid:
            self.running.add(pid)
            return pid
        os.setsid()
        os.chdir(folder)
        place = Path(out)
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        Forked.stop, Forked.at = (Stop(**stop), job) if stop and job else (None, 0)
        run_prism(words, Stop(**stop) if stop and not job else None, place)

    def wait(self, pid: int, seconds: float) -> int | None:
        """Return the exit code of a command, negative for a signal; ``None``: it still runs."""
        end = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self.running.discard(pid)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                return None
            time.sleep(0.005)

    def close(self) -> None:
        """End what still runs, with what it started."""
        for pid in self.running:
            os.killpg(pid, signal.SIGKILL)


class Forked(subprocess.Popen[bytes]):
    """Forks what would be a new ``prism`` process, and starts everything else as usual."""

    stop: Stop | None = None
    """Where a job of a campaign is stopped."""
    at = 0
    """Which one."""
    count = 0
    """Jobs started so far."""
    watched: Operations | None = None
    """The operations of the process that starts jobs; theirs are their own."""

    def __init__(self, args: Any, **options: Any) -> None:
        log = options.get("stdout")
        if list(args)[1:3] != ["-m", "prism_motor.cli"] or not hasattr(log, "fileno"):
            super().__init__(args, **options)
            return
        Forked.count += 1
        self.args, self.returncode = args, None
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, threading.Lock()
        self.pid = os.fork()
        if self.pid:
            return
        if options.get("start_new_session"):
            os.setsid()
        if Forked.watched is not None:
            Forked.watched.active = False
        os.dup2(log.fileno(), 1)
        os.dup2(1, 2)
        os.closerange(3, 1024)
        if options.get("env") is not None:
            os.environ.clear()
            os.environ.update(options["env"])
        run_prism(list(args)[3:], Forked.stop if Forked.count == Forked.at else None, None)


def run_prism(words: list[str], stop: Stop | None, out: Path | None) -> NoReturn:
    """Be a ``prism`` process: run a command and exit with its code."""
    import numpy as np
    import torch

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.argv = ["prism", *words]
    # Nothing may depend on random numbers that a new process happens to have.
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(os.getpid())
    operations = Operations(stop) if stop is not None else None
    if operations is not None:
        Forked.watched = operations
        operations.install()
    code = 0
    try:
        from prism_motor.cli import main

        main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    if operations is not None:
        operations.active = False
        if out is not None:
            (out / OPERATIONS).write_text(json.dumps(operations.seen))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def warm(domain: str) -> None:
    """Import what commands import, and replace what is too slow for tests."""
    import torch

    from prism_motor.campaigns import runner
    from tests.train.cases import CASES

    torch.set_num_threads(1)
    CASES[domain].setup()
    CASES[domain].make()
    packages = {"locomotion": ["locomotion"], "manipulation": ["manipulation", "integrations"]}
    for package in ("runs", "train", "report", "campaigns", *packages.get(domain, [])):
        inside = importlib.import_module(f"prism_motor.{package}").__path__
        for found in pkgutil.walk_packages(inside, f"prism_motor.{package}."):
            with suppress(ImportError):
                importlib.import_module(found.name)
    for name in _IMPORTS:
        with suppress(ImportError):
            importlib.import_module(name)
    runner.Runner.__init__.__kwdefaults__["poll"] = 0.02
    subprocess.Popen = Forked  # type: ignore[misc]


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing that prints may disturb the answers
    warm(sys.argv[1])
    children = Children()
    answers.write("{}\n")
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(children, request.pop("do"))(**request)
        answers.write(json.dumps(answer) + "\n")
    children.close()
    os._exit(0)  # an orderly end of so many modules takes seconds


if __name__ == "__main__":
    main()
