"""Training: both phases end with what they say, dumps replay, buffers resume and are pruned."""

import gc
import json
import weakref
from dataclasses import replace

import pytest
import torch

from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.runs import CheckpointError, Run, RunError
from prism_motor.tracking import trainer as tracking_trainer
from prism_motor.train import session
from prism_motor.train.distributed import ALONE, Rank
from prism_motor.train.finite import NonFiniteTrainingError
from tests.train.cases import CASES, assert_same_run

CASE = CASES["tracking"]


@pytest.fixture(autouse=True)
def short_clips(monkeypatch):
    CASE.patch(monkeypatch)


def start(tmp_path, name="run", **changes):
    return session.start(CASE.make(**changes), tmp_path / name)


def test_rows_of_both_phases(tmp_path):
    run, trainer = start(tmp_path)
    session.train(run, trainer)
    rows = Run.open(run.path).metrics()
    assert [row["warm_start"] for row in rows] == [1, 1, 0, 0, 0, 0]
    config = trainer.config
    assert [row["samples"] for row in rows] == [config.samples_at(n) for n in range(1, 7)]
    assert rows[1]["samples"] == 2 * config.warm_start.steps * config.envs
    assert "tracking_reward" in rows[0]
    assert "actor/value" not in rows[0]
    assert rows[-1]["gradient_steps"] == 4 * config.learner.sweeps
    for row in (rows[0], rows[-1]):
        assert trainer.describe(row)
    assert trainer.replay.added == 2 * config.warm_start.steps + 4 * config.learner.sweeps


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (1, "reward of environment 5 is nan"),  # in the warm start its episode is over at once
        (2, "observation 'policy' of environment 5"),
        (4, "observation 'policy' of environment 5"),
    ],
)
def test_a_dump_of_either_phase_replays_to_the_same_message(tmp_path, capsys, at, said):
    run, trainer = start(tmp_path)
    session.train(run, trainer, at)
    before = {name: value.clone() for name, value in trainer.state()[0].items()}
    trainer.env.engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError) as error:
        session.train(run, trainer)
    assert f"Update {at + 1} stopped: {said}" in str(error.value)
    # The failed update left no trace in what the trainer holds, but for the bad value.
    after = trainer.state()[0]
    for name, value in before.items():
        if not name.startswith("env.engine"):
            assert torch.equal(value, after[name]), name
    dump = run.path / "nonfinite" / f"{at:08d}"
    with pytest.raises(SystemExit) as stopped:
        main(["replay", str(dump)])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
    # What a dump needs stays, whatever the run goes on to write.
    session.train(*session.resume(run.path))
    with pytest.raises(NonFiniteTrainingError, match=said):
        session.replay(dump)


def make_trainer():
    config = DOMAINS["tracking"].prepare(CASE.make())
    return DOMAINS["tracking"].trainer(config, ALONE)


def test_a_state_has_one_copy_of_the_networks(monkeypatch):
    trainer = make_trainer()
    copies, plain = trainer.learner.state()
    monkeypatch.setattr(trainer.learner, "state", lambda: (dict(copies), plain))
    held, _ = trainer._live_state()
    assert all(held[name] is value for name, value in copies.items())


def test_what_an_update_could_put_back_is_gone_after_it(monkeypatch):
    trainer, made = make_trainer(), []
    original = tracking_trainer._Before.__init__

    def remember(before, owner):
        original(before, owner)
        made.append(weakref.ref(before))

    monkeypatch.setattr(tracking_trainer._Before, "__init__", remember)
    trainer.update()
    gc.collect()
    assert [before() for before in made] == [None]


def test_files_of_the_buffer_are_written_once_and_pruned(tmp_path):
    run, trainer = start(tmp_path, keep_checkpoints=1, checkpoint_every=1, updates=9)
    folder = run.path / "replay"
    written = {}
    for update in range(1, 10):
        if update > 1:
            run, trainer = session.resume(run.path)
        session.train(run, trainer, update)
        files = {file.name: file.stat().st_mtime_ns for file in folder.glob("*")}
        for name in written.keys() & files.keys():
            assert files[name] == written[name], "a file was written again"
        written |= files
    capacity = trainer.config.replay.rows
    rows = sorted(int(name.split("-")[1]) for name in files)
    assert rows[0] >= trainer.replay.added - capacity - 8  # what fell out of the ring is gone
    state = json.loads(next((run.path / "checkpoints").glob("00000009/state.json")).read_text())
    needed = {one["file"] for one in state["replay"]["segments"]}
    assert needed <= set(files)
    assert len(files) <= len(needed) + 1


def test_the_buffer_resumes_with_a_tail_that_fills_no_file(tmp_path):
    odd = CASE.make()
    odd = replace(odd, replay=replace(odd.replay, segment_rows=5))
    run, trainer = session.start(odd, tmp_path / "run")
    session.train(run, trainer, 3)
    resumed = session.resume(run.path)[1]
    assert trainer.replay.added == resumed.replay.added == 24
    for name, rows in trainer.replay.rows(0, 24).items():
        assert torch.equal(rows, resumed.replay.rows(0, 24)[name]), name
    whole = session.start(odd, tmp_path / "whole")
    session.train(*whole)
    session.train(*session.resume(run.path))
    assert_same_run(run.path, tmp_path / "whole")


def test_a_missing_or_changed_file_of_the_buffer_is_named(tmp_path):
    run, trainer = start(tmp_path)
    session.train(run, trainer, 4)
    file = sorted((run.path / "replay").glob("*"))[0]
    whole = file.read_bytes()
    for damage in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), None):
        file.unlink()
        if damage is not None:
            file.write_bytes(damage)
        with pytest.raises(CheckpointError, match=rf"{file.name}.*missing or changed"):
            session.resume(run.path)
        file.write_bytes(whole)
    session.train(*session.resume(run.path))


def test_changed_clips_are_refused(tmp_path, monkeypatch):
    run, trainer = start(tmp_path)
    session.train(run, trainer, 3)
    from prism_motor.tracking import references

    cut = references.find_clips
    with monkeypatch.context() as patch:
        patch.setattr(references, "find_clips", lambda names: cut(names)[::-1])
        with pytest.raises(RunError, match=r"not those that the run started with.*new run"):
            session.resume(run.path)
    session.train(*session.resume(run.path))


def test_priorities_follow_the_distance_and_resume(tmp_path):
    run, trainer = start(tmp_path, prioritise_every=3)
    session.train(run, trainer, 3)
    row = Run.open(run.path).metrics()[-1]
    assert row["tracking/emd"] > 0
    assert 0 <= row["tracking/upright"] <= 1
    assert trainer.env.priorities.sum() == pytest.approx(1.0)
    session.train(*session.resume(run.path))
    session.train(*start(tmp_path, "whole", prioritise_every=3))
    assert_same_run(run.path, tmp_path / "whole")


def test_several_processes_are_refused():
    with pytest.raises(ValueError, match="single process; remove --processes"):
        DOMAINS["tracking"].trainer(CASE.make(), Rank(0, 2))


def test_without_any_warm_up_learning_begins_with_the_first_transition(tmp_path):
    run, trainer = start(tmp_path, updates=1)
    assert trainer.config.warm_start.updates == trainer.config.learner.warmup_steps == 0
    session.train(run, trainer)
    assert trainer.learner.steps == trainer.config.learner.sweeps - 1
