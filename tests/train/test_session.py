"""Training sessions of every domain: interruption anywhere, resume, refusals."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from prism_motor._processes import Stopped, exit_code
from prism_motor.cli import main
from prism_motor.domains import DOMAINS, open_run
from prism_motor.runs import CheckpointError, Run, RunError, to_dict
from prism_motor.runs.locks import LockedError
from prism_motor.train import session
from prism_motor.train.distributed import Rank
from prism_motor.train.finite import NonFiniteTrainingError
from tests.train.cases import CASES, assert_same_run


def interrupt_update(trainer, number, times=1):
    """Press Ctrl-C at the beginning of an update."""
    update = trainer.update

    def interrupted():
        if trainer.updates == number - 1:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return update()

    trainer.update = interrupted


def test_a_run_folder_is_complete(case, whole):
    run, domain, config = open_run(whole)
    assert domain is DOMAINS[case.name]
    assert config == case.make()
    assert run.steps() == [2, 4, 6]
    assert [row["update"] for row in run.metrics()] == [1, 2, 3, 4, 5, 6]
    stored = json.loads((whole / "config.json").read_text())
    assert stored == json.loads(json.dumps(to_dict(case.make())))
    assert stored["kind"] == case.name
    assert json.loads((whole / "provenance.json").read_text())["packages"]["torch"]


def test_seeds_decide_the_run(case, whole, tmp_path):
    session.train(*session.start(case.make(), tmp_path / "same"))
    assert_same_run(tmp_path / "same", whole)
    session.train(*session.start(case.make(seed=4), tmp_path / "other"))
    prefix = DOMAINS[case.name].weights
    one, two = (Run.open(path).weights(prefix) for path in (whole, tmp_path / "other"))
    assert any(not torch.equal(one[name], two[name]) for name in one)


def test_describing_a_run_takes_no_random_numbers_from_it(case, tmp_path):
    run, trainer = session.start(case.make(), tmp_path / "run")
    run.close()
    domain, before = DOMAINS[case.name], [torch.get_rng_state(), np.random.get_state()[1]]
    assert domain.summary(trainer)
    domain.reporting.parameters(trainer.config)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_ctrl_c_lets_the_update_end_and_the_run_resumes_exactly(case, whole, tmp_path):
    run, trainer = session.start(case.make(), tmp_path / "run")
    interrupt_update(trainer, 3)
    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer)
    assert run.steps()[-1] == 3
    torch.manual_seed(999)  # another process has other random numbers
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)


def test_ctrl_c_while_a_checkpoint_is_written_saves_once_more(case, whole, tmp_path):
    run, trainer = session.start(case.make(checkpoint_every=3), tmp_path / "run")
    save = run.save

    def interrupted(step, *state):
        if step == 3:
            signal.raise_signal(signal.SIGINT)
        return save(step, *state)

    run.save = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer)
    assert run.steps() == [0, 3, 4]
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)


def test_a_second_ctrl_c_ends_at_once_and_the_run_resumes_exactly(case, whole, tmp_path):
    run, trainer = session.start(case.make(), tmp_path / "run")
    interrupt_update(trainer, 4, times=2)
    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer)
    assert trainer.updates == 3
    assert run.steps()[-1] == 2
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)


def test_ctrl_c_is_as_it_was_after_training(case, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    session.train(*session.start(case.make(updates=1), tmp_path / "run"))
    assert signal.getsignal(signal.SIGINT) is before


SCRIPT = """
import sys
from prism_motor.train import session
from tests.train.cases import CASES
case = CASES[sys.argv[1]]
case.setup()
run, trainer = session.start(case.make(updates=300), sys.argv[2])
session.train(run, trainer, report=lambda row: print(row["update"], flush=True))
"""


@pytest.mark.slow
def test_kill_9_resumes_exactly(case, tmp_path):
    path = tmp_path / "run"
    key = next(key for key, one in CASES.items() if one is case)
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, key, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= 5:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    last = Run.open(path).load().step
    assert 4 <= last < 300
    run, trainer = session.resume(path)
    session.train(run, trainer, last + 3)
    run, trainer = session.start(case.make(updates=300), tmp_path / "uninterrupted")
    session.train(run, trainer, last + 3)
    assert_same_run(path, tmp_path / "uninterrupted")


def test_in_parts_and_with_a_lower_total(case, whole, tmp_path):
    run, trainer = session.start(case.make(), tmp_path / "run")
    session.train(run, trainer, 2)
    run, trainer = session.resume(tmp_path / "run", updates=5)
    session.train(run, trainer, 5)
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)
    with pytest.raises(ValueError, match=r"already has 6 updates; --updates 5 is the new total"):
        session.resume(tmp_path / "run", updates=5)


def test_more_updates_than_planned_unless_the_schedule_ends_with_them(case, whole, tmp_path):
    session.train(*session.start(case.make(updates=4), tmp_path / "run"))
    if DOMAINS[case.name].can_train_longer:
        run, trainer = session.resume(tmp_path / "run", updates=6)
        session.train(run, trainer, 6)
        assert_same_run(tmp_path / "run", whole)
    else:
        with pytest.raises(ValueError, match=r"ends after 4 updates.*new run"):
            session.resume(tmp_path / "run", updates=6)


def test_a_checkpoint_from_before_updates_were_called_so_resumes(case, whole, tmp_path):
    if case.name in ("tracking", "gymnasium"):
        pytest.skip(f"{case.name} is younger than that")
    run, trainer = session.start(case.make(), tmp_path / "run")
    session.train(run, trainer, 2)
    checkpoint = run.load()
    state = {"iteration": checkpoint.state.pop("updates"), **checkpoint.state}
    run.save(checkpoint.step, checkpoint.tensors, state)
    file = tmp_path / "run" / "metrics.jsonl"
    file.write_text(file.read_text().replace('"update"', '"iteration"'))
    run, trainer = session.resume(tmp_path / "run")
    assert trainer.updates == 2
    session.train(run, trainer)
    assert_same_run(tmp_path / "run", whole)


def test_a_damaged_newest_checkpoint_costs_its_updates_and_nothing_else(
    case, whole, tmp_path, capsys
):
    run, trainer = session.start(case.make(), tmp_path / "run")
    session.train(run, trainer, 4)
    file = run.path / "checkpoints" / "00000004" / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        DOMAINS[case.name].load_policy(tmp_path / "run")
    assert DOMAINS[case.name].load_policy(tmp_path / "run", 2) is not None
    run, trainer = session.resume(tmp_path / "run")
    assert trainer.updates == 2
    assert "Resuming from checkpoint 2 instead of 4" in capsys.readouterr().err
    session.train(run, trainer)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_and_hang_up_save_like_ctrl_c(whole, number, tmp_path, case):
    run, trainer = session.start(case.make(), tmp_path / "run")
    update = trainer.update

    def stopped():
        if trainer.updates == 2:  # clusters may send it to every process, and launchers again
            signal.raise_signal(number)
            signal.raise_signal(number)
        return update()

    trainer.update = stopped
    with pytest.raises(Stopped) as stop:
        session.train(run, trainer)
    assert exit_code(stop.value) == 128 + number
    assert run.steps()[-1] == 3
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)


def test_a_run_has_one_owner_while_it_trains(case, whole, tmp_path):
    run, trainer = session.start(case.make(), tmp_path / "run")
    owner = f"being trained by process {os.getpid()} on"
    with pytest.raises(LockedError, match=owner):
        session.resume(tmp_path / "run")
    with pytest.raises(LockedError, match=owner):
        session.start(case.make(), tmp_path / "run")
    with pytest.raises(LockedError, match=owner):
        session.train(Run.open(tmp_path / "run"), trainer)
    session.train(run, trainer)
    assert_same_run(tmp_path / "run", whole)
    assert session.resume(tmp_path / "run")[1].updates == 6


def test_a_run_cut_before_its_first_checkpoint_resumes_from_the_beginning(case, whole, tmp_path):
    Run.create(tmp_path / "run", to_dict(case.make())).close()
    (tmp_path / "run" / "checkpoints" / ".00000000.99.tmp").mkdir()
    session.train(*session.resume(tmp_path / "run"))
    assert_same_run(tmp_path / "run", whole)


def test_values_that_are_not_finite_leave_a_dump_that_replays(case, whole, tmp_path, capsys):
    run, trainer = session.start(case.make(), tmp_path / "run")
    session.train(run, trainer, 3)
    case.poison(trainer)
    with pytest.raises(NonFiniteTrainingError, match=f"Update 4 stopped: .*{case.culprit}") as e:
        session.train(run, trainer)
    dump = run.path / "nonfinite" / "00000003"
    assert f"prism replay {dump}" in str(e.value)
    assert "last good checkpoint is 3" in str(e.value)
    assert run.steps()[-1] == 3
    with pytest.raises(NonFiniteTrainingError, match=case.culprit):
        session.replay(dump)
    with pytest.raises(SystemExit) as stopped:
        main(["replay", str(dump)])
    assert stopped.value.code == 2
    assert case.culprit in capsys.readouterr().err
    session.train(*session.resume(tmp_path / "run"))  # the run is fine
    assert_same_run(tmp_path / "run", whole)


def test_a_full_disk_stops_with_the_last_good_checkpoint(case, tmp_path, monkeypatch):
    run, trainer = session.start(case.make(), tmp_path / "run")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(CheckpointError, match="No space left"):
        session.train(run, trainer)
    monkeypatch.undo()
    assert run.load().step == 0


def test_another_number_of_processes_is_refused(whole):
    with pytest.raises(RunError, match=r"trained by 1 process; now there are 2.*--processes 1"):
        session.resume(whole, rank=Rank(0, 2))


def test_a_start_that_fails_leaves_nothing_behind(case, tmp_path, monkeypatch):
    domain = DOMAINS[case.name]

    def refuse(*_):
        raise ValueError("cannot be trained")

    for name in ("prepare", "trainer"):
        with monkeypatch.context() as patch:
            patch.setattr(type(domain), name, refuse)
            with pytest.raises(ValueError, match="cannot be trained"):
                session.start(case.make(), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_empty_is_refused_with_advice(case, whole, tmp_path):
    with pytest.raises(RunError, match=f"not empty.*--resume {whole}"):
        session.start(case.make(), whole)
    cut = tmp_path / "cut"
    Run.create(cut, {}).close()
    session.start(case.make(updates=5), cut)
    assert open_run(cut)[2].updates == 5
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo").write_text("")
    with pytest.raises(RunError, match="not a run"):
        session.start(case.make(), tmp_path / "notes")
    (tmp_path / "empty").mkdir()
    session.start(case.make(), tmp_path / "empty")
