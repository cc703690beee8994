"""Data-parallel training: processes agree, stop together, resume exactly, and fail in one voice."""

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from prism_motor._checks import BugError, InputError, PrismError
from prism_motor._processes import Stopped
from prism_motor.domains import DOMAINS
from prism_motor.runs import Run, RunError
from prism_motor.sim.batch import RobotBatch
from prism_motor.train import distributed, session
from prism_motor.train.distributed import ALONE, Rank
from tests.train.cases import CASES, assert_same_run

PRISM = (sys.executable, "-m", "prism_motor.cli")
TINY = (
    "train", "locomotion", "--envs", "8", "--threads", "1", "--ppo.steps", "6",
    "--ppo.epochs", "1", "--ppo.minibatches", "2", "--checkpoint-every", "2", "--processes", "2",
    "--arm", "prism-residual",
)  # fmt: skip


def prism(*words, **options):
    return subprocess.run(
        [*PRISM, *map(str, words)], capture_output=True, text=True, check=False, **options
    )


def test_one_process_is_alone_and_needs_no_group(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    rank = distributed.current_rank()
    assert rank == ALONE
    assert rank.is_main
    distributed.connect(rank)
    assert not torch.distributed.is_initialized()
    distributed.disconnect()
    distributed.check_agreement({"actor": nn.Linear(2, 2)})
    tensors = {"env.x": torch.zeros(1)}
    assert distributed.gather(tensors, ("env.",)) is tensors
    assert [distributed.agree(asked) for asked in (True, False)] == [True, False]


def test_torchrun_says_who_this_process_is(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert distributed.current_rank() == Rank(1, 3)
    assert not distributed.current_rank().is_main


@pytest.mark.slow
def test_ctrl_c_saves_once_for_all_exits_with_130_and_the_run_resumes_exactly(tmp_path):
    path = tmp_path / "run"
    child = subprocess.Popen(
        [*PRISM, *TINY, "--updates", "2000", "--checkpoint-every", "5000", "--out", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    metrics, deadline = path / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and len(metrics.read_text().splitlines()) >= 3):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130, said
    assert f"prism train --resume {path} --processes 2" in said
    assert "Traceback" not in said
    run = Run.open(path)
    step = run.steps()[-1]
    assert 3 <= step < 2000
    assert run.metrics()[-1]["update"] == step
    with pytest.raises(RunError, match=r"trained by 2 processes.*--processes 2"):
        session.resume(path)

    resumed = prism("train", "--resume", path, "--updates", step + 2, "--processes", 2)
    assert resumed.returncode == 0, resumed.stderr
    assert f"Done: {step + 2} updates" in resumed.stdout
    whole = prism(*TINY, "--updates", step + 2, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert_same_run(path, tmp_path / "whole")
    tensors = run.load().tensors
    assert not torch.equal(tensors["rank0.env.engine.state"], tensors["rank1.env.engine.state"])
    assert "actor.mlp.0.weight" in tensors  # what is the same everywhere is there once
    assert DOMAINS["locomotion"].load_policy(path).step == step + 2
    assert run.metrics()[-1]["samples"] == (step + 2) * 8 * 6


def join_and_leave(text):
    """Leave the group at once in process 0, while the other one arrives late."""
    rank = distributed.current_rank()
    time.sleep(2 * rank.index)
    distributed.connect(rank)
    distributed.disconnect()
    print(text, rank.index, flush=True)


def test_the_first_process_may_leave_at_once_and_gloo_greets_nobody(capfd):
    distributed.launch(2, join_and_leave, "here is")
    assert sorted(capfd.readouterr().out.splitlines()) == ["here is 0", "here is 1"]


@pytest.mark.slow
def test_a_finished_run_says_so_once(tmp_path):
    path = tmp_path / "run"
    assert prism(*TINY, "--updates", 1, "--out", path).returncode == 0
    words = ("train", "--resume", path, "--processes", 2)
    assert prism(*words, "--updates", 2).returncode == 0
    again = prism(*words)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines() == [
        f"{path} already has 2 updates; use a larger --updates to continue."
    ]


@pytest.mark.slow
def test_a_mistake_that_every_process_finds_is_one_message(tmp_path):
    uneven = prism(*TINY, "--envs", 9, "--out", tmp_path / "run")
    assert uneven.returncode == 2, uneven.stderr
    assert uneven.stderr.count("prism: error:") == 1
    assert "9 environments cannot be shared evenly by 2 processes" in uneven.stderr
    assert "Traceback" not in uneven.stderr
    assert not (tmp_path / "run").exists()


def fail(kind, when):
    """Fail in process 1; the other one waits for it until it is told or ended."""
    if os.environ["RANK"] != "1":
        time.sleep(when)
        raise RuntimeError("the connection was closed by a peer")
    if kind == "mistake":
        raise InputError("nine cannot be halved")
    if kind == "disk":
        raise OSError(errno.ENOSPC, "No space left on device", "runs/one")
    if kind == "bug":
        raise ZeroDivisionError("bolts everywhere")
    os.kill(os.getpid(), signal.SIGTERM if kind == "stop" else signal.SIGKILL)
    time.sleep(60)


@pytest.mark.parametrize(
    ("kind", "raised", "said"),
    [
        ("mistake", PrismError, "^nine cannot be halved$"),
        ("disk", PrismError, r"^runs/one: No space left on device\. Free some space"),
        ("bug", BugError, r"^Traceback(.|\n)*bolts everywhere"),
        ("killed", PrismError, "^Process 1 of 2 ended with SIGKILL"),
        ("stop", Stopped, "15"),
    ],
)
def test_what_goes_wrong_first_in_any_process_is_what_is_said(kind, raised, said):
    with pytest.raises(raised, match=said) as error:
        distributed.launch(2, fail, kind, 2.0)
    assert str(error.value).count("Traceback") == (kind == "bug")
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_processes_that_never_notice_are_ended(monkeypatch):
    monkeypatch.setattr(distributed, "_PATIENCE", {"": 1.0})
    began = time.monotonic()
    with pytest.raises(PrismError, match="nine cannot be halved"):
        distributed.launch(2, fail, "mistake", 600.0)
    assert time.monotonic() - began < 60
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_processes_that_diverge_together_leave_a_message_and_a_state_each(tmp_path):
    path = tmp_path / "run"
    wild = prism(*TINY, "--ppo.learning-rate", "100", "--updates", 50, "--out", path)
    assert wild.returncode == 2, wild.stderr
    assert wild.stderr.count("prism: error:") == 1
    assert "Traceback" not in wild.stderr
    assert re.search(r"Update \d+ stopped in process [01] of 2: .* in ", wild.stderr)
    (step,) = {entry.name for entry in (path / "nonfinite").glob("rank*/*")}
    with pytest.raises(RunError, match="only single-process runs can be replayed"):
        session.replay(path / "nonfinite" / "rank0" / step)


def torchrun(*words):
    """Run what TINY says in two processes of torchrun."""
    own = [word for word in TINY if word != "--processes"]
    own.pop(own.index("--arm") - 1)  # its number
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    return subprocess.run(
        [*launcher, "--nproc-per-node", "2", *PRISM[1:], *own, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_run_of_torchrun_goes_on_exactly_without_it(tmp_path):
    begun = torchrun("--updates", 2, "--out", tmp_path / "run")
    assert begun.returncode == 0, begun.stderr
    words = ("train", "--resume", tmp_path / "run", "--updates", 4, "--processes", 2)
    assert prism(*words).returncode == 0
    whole = prism(*TINY, "--updates", 4, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_under_torchrun_the_first_process_says_what_all_find(tmp_path):
    uneven = torchrun("--envs", 9, "--out", tmp_path)
    assert uneven.returncode != 0
    assert uneven.stderr.count("prism: error: 9 environments cannot be shared") == 1


@pytest.mark.slow
def test_a_bug_in_one_process_is_a_bug_with_its_traceback(tmp_path):
    (tmp_path / "broken.py").write_text(
        "from prism_motor.locomotion.trainer import WalkingTrainer\n"
        "def update(self):\n"
        "    raise RuntimeError('bolts everywhere')\n"
        "WalkingTrainer.update = update\n"
    )
    broken = prism(*TINY, "--plugin", "broken.py", "--out", tmp_path / "run", cwd=tmp_path)
    assert broken.returncode == 1
    assert broken.stderr.count("RuntimeError: bolts everywhere") == 1
    assert "this is a bug in prism" in broken.stderr
    assert "prism info" in broken.stderr


def test_a_process_joins_the_others_with_its_engine_made_and_the_folder_as_it_was(
    tmp_path, monkeypatch
):
    events = []
    make = RobotBatch.__init__
    monkeypatch.setattr(
        RobotBatch, "__init__", lambda *args, **how: events.append("engine") or make(*args, **how)
    )

    def join(*_args, **_how):
        steps = Run.open(path).steps() if path.exists() else []
        events.append(f"group, {len(steps)} checkpoints")

    monkeypatch.setattr(torch.distributed, "init_process_group", join)
    path, config = tmp_path / "run", CASES["locomotion"].make()
    run, _ = session.start(config, path, Rank(0, 2))
    run.close()
    assert events == ["engine", "group, 0 checkpoints"]
    run, _ = session.resume(path, rank=Rank(0, 2))
    run.close()
    assert events[2:] == ["engine", "group, 1 checkpoints"]
    with pytest.raises(RunError, match="is not empty"):  # without waiting for the first process
        session.start(config, path, Rank(1, 2))
    assert len(events) == 4


@pytest.mark.parametrize(("cuda", "backend"), [(True, "cpu:gloo,cuda:nccl"), (False, "gloo")])
def test_gloo_moves_what_is_on_the_cpu_and_nccl_what_is_on_a_gpu(monkeypatch, cuda, backend):
    joined = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda name, **rest: joined.update(rest, name=name)
    )
    distributed.connect(Rank(1, 2, 1))
    assert joined == {"name": backend, "rank": 1, "world_size": 2}


def test_torchrun_says_which_device_is_the_process_s_own(monkeypatch):
    for name, value in (("RANK", "5"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    assert distributed.current_rank() == Rank(5, 8, local=1)
