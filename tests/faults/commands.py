"""Calls ``prism`` as a process of its own, stopped where a test wants it to be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.server import OPERATIONS
from tests.faults.stops import Stop

ROOT = Path(__file__).parents[2]
LIMIT = 300
"""Seconds after which a command counts as hanging."""


@dataclass(frozen=True)
class Ended:
    """A command that is over."""

    words: tuple[str, ...]
    """Its arguments."""
    code: int
    """Its exit code; negative for the signal that ended it."""
    out: str
    """What it wrote to stdout."""
    err: str
    """What it wrote to stderr."""
    operations: tuple[str, ...] = ()
    """Its file operations, if they were counted to the end."""

    @property
    def text(self) -> str:
        """All that it wrote."""
        return self.out + self.err

    @property
    def crashed(self) -> bool:
        """Whether it ended by an error that nobody explained."""
        return "Traceback (most recent call last)" in self.text or "is a bug in prism" in self.text

    @property
    def refused(self) -> bool:
        """Whether it ended with one message and exit code 2."""
        return self.code == 2 and not self.crashed and self.err.count("prism: error: ") == 1

    def __str__(self) -> str:
        tail = "\n    ".join(self.text.strip().splitlines()[-3:])
        return f"prism {' '.join(self.words)}: exit code {self.code}\n    {tail}"


class Prism:
    """Runs commands of one domain in forks of one process.

    Args:
        domain: A key of ``tests.train.cases.CASES``.
        scratch: A folder of its own.
    """

    def __init__(self, domain: str, scratch: Path) -> None:
        self.scratch, self.count = scratch, 0
        paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src"), str(ROOT)]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server", domain],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | threads | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        self._answer()

    def __call__(
        self, *words: object, stop: Stop | None = None, job: int = 0, cwd: Path | None = None
    ) -> Ended:
        """Run a command to its end.

        Args:
            words: Arguments of ``prism``.
            stop: Where it is stopped.
            job: Which job of a campaign is stopped instead.
            cwd: Where it is called.
        """
        return self.start(*words, stop=stop, job=job, cwd=cwd).wait()

    def start(
        self, *words: object, stop: Stop | None = None, job: int = 0, cwd: Path | None = None
    ) -> Running:
        """Start a command; see :meth:`__call__`."""
        self.count += 1
        out = self.scratch / f"command-{self.count}"
        out.mkdir()
        given = tuple(map(str, words))
        pid = self._ask(
            do="start",
            words=given,
            folder=str(cwd or self.scratch),
            out=str(out),
            stop=None if stop is None else asdict(stop),
            job=job,
        )
        return Running(self, pid, given, out)

    def close(self) -> None:
        """End the process, with everything that it started."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.close()
        self.server.wait(30)
        self.server.stdout.close()

    def _ask(self, **request: Any) -> Any:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        assert line, "the process that forks commands has ended"
        return json.loads(line)


@dataclass
class Running:
    """A command that was started."""

    prism: Prism
    pid: int
    words: tuple[str, ...]
    place: Path
    over: bool = False

    def wait(self, seconds: float = LIMIT) -> Ended:
        """Return how it ended; one that hangs is ended, and fails the test."""
        code = self.prism._ask(do="wait", pid=self.pid, seconds=seconds)
        out, err = ((self.place / name).read_text() for name in ("stdout", "stderr"))
        if code is None:
            self.kill(signal.SIGKILL)
            self.prism._ask(do="wait", pid=self.pid, seconds=30)
            raise AssertionError(f"hangs: prism {' '.join(self.words)}\n{out[-500:]}{err[-500:]}")
        self.over = True
        listed = self.place / OPERATIONS
        seen = tuple(json.loads(listed.read_text())) if listed.exists() else ()
        return Ended(self.words, code, out, err, seen)

    def kill(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def end(self) -> None:
        """End it if it still runs."""
        if not self.over:
            self.kill(signal.SIGKILL)
            self.wait()


def real(*words: object, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """Start ``prism`` as users do, with all imports."""
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src")]
    return subprocess.Popen(
        [sys.executable, "-m", "prism_motor.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        **options,
    )


def ended(process: subprocess.Popen[str], words: Sequence[object] = ()) -> Ended:
    """Wait for a process of :func:`real`."""
    out, err = process.communicate(timeout=LIMIT)
    return Ended(tuple(map(str, words)), process.returncode, out, err)
