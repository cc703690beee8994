"""Experiment trackers: the same everywhere, continued by resumed runs, never in the way."""

import json
import multiprocessing
import sys

import pytest

from prism_motor.cli import main
from prism_motor.train import trackers
from prism_motor.train.trackers import Trackers, read_memory

SETTINGS = {"arm": "prism", "ppo": {"steps": 6}}


def follow(run, names, *, done=0, last=2):
    """One session of a run: some rows, a film, a table."""
    made = Trackers(run, SETTINGS, names, done)
    for update in range(done + 1, last + 1):
        made({"update": update, "loss": update / 2, "reward/upright": 1.0})
    film = run / f"{last:08d}.mp4"
    film.write_bytes(b"film")
    made.show_film(film, last)
    made.show_table("evaluation", "condition  survival\nnominal    100.0", last)
    made.close()


def test_tensorboard_is_the_default_and_leaves_nothing_to_remember(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    follow(tmp_path, None)
    assert not (tmp_path / "trackers.json").exists()
    events = read_events(tmp_path / "tensorboard")
    assert [event.step for event in events.Scalars("loss")] == [1, 2]
    assert sorted(events.Tags()["scalars"]) == ["loss", "reward/upright"]
    texts = {name.partition("/")[0] for name in events.Tags()["tensors"]}
    assert texts == {"config", "film", "evaluation"}


def read_events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return events


@pytest.mark.slow
def test_wandb_works_offline_and_a_resumed_run_goes_on_with_its_own(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed")
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    follow_elsewhere(tmp_path, ["wandb"])
    identity = read_memory(tmp_path)["wandb"]["id"]
    follow_elsewhere(tmp_path, None, done=2, last=4)  # what a resumed run does
    assert read_memory(tmp_path) == {"wandb": {"id": identity}}
    files = sorted((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert {file.stem for file in files} == {f"run-{identity}"}
    assert len(files) == 2
    rows = [row for file in files for row in read_wandb(file)]
    assert [row["update"] for row in rows if "loss" in row] == [1, 2, 3, 4]
    assert [row["loss"] for row in rows if "loss" in row] == [0.5, 1.0, 1.5, 2.0]
    kinds = [row[name]["_type"] for row in rows for name in ("film", "evaluation") if name in row]
    assert kinds == ["video-file", "table-file"] * 2
    assert not (tmp_path / "tensorboard").exists()


def follow_elsewhere(run, names, **options):
    """One session in a process of its own, as wandb's service expects of runs that are resumed."""
    process = multiprocessing.get_context("spawn").Process(
        target=follow, args=(run, names), kwargs=options
    )
    process.start()
    process.join()
    assert process.exitcode == 0


def read_wandb(file):
    """Return the rows of an offline run."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store, rows = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        row = {}
        for item in record.history.item:
            *above, name = item.nested_key or [item.key]
            place = row.setdefault(above[0], {}) if above else row
            place[name] = json.loads(item.value_json)
        rows += [row] if row else []
    return rows


def test_mlflow_works_with_files_and_a_resumed_run_goes_on_with_its_own(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    follow(tmp_path, ["mlflow"])
    identity = read_memory(tmp_path)["mlflow"]["id"]
    follow(tmp_path, None, done=2, last=4)
    client = MlflowClient((tmp_path / "mlflow").as_uri())
    history = client.get_metric_history(identity, "loss")
    assert [(one.step, one.value) for one in history] == [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]
    names = {item.path for item in client.list_artifacts(identity)}
    assert {"config.json", "evaluation-00000002.txt", "films"} <= names
    assert client.get_run(identity).info.status == "FINISHED"


class Failing:
    """A tracker whose server has gone away."""

    def __init__(self, *_):
        self.memory = {"id": "x"}

    def log(self, row):
        if row["update"] > 1:
            raise ConnectionError("the server has gone away")

    def close(self):
        raise AssertionError("it was left out before")


def test_a_tracker_that_fails_is_left_out_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    monkeypatch.setitem(trackers.TRACKERS_BY_NAME, "wandb", Failing)
    follow(tmp_path, ["wandb", "tensorboard"], last=4)
    said = capsys.readouterr().err
    assert said.count("wandb failed (ConnectionError: the server has gone away)") == 1
    assert [event.step for event in read_events(tmp_path / "tensorboard").Scalars("loss")] == [
        1, 2, 3, 4,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_missing_package_names_its_extra_before_training(tmp_path, monkeypatch, capsys, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit):
        main(["train", "locomotion", "--out", str(tmp_path / "run"), "--tracker", name])
    assert f"pip install 'prism-motor[{name}]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    Trackers(tmp_path, SETTINGS, [name]).close()  # where a resumed run lacks it, it goes on
    assert f"{name} failed" in capsys.readouterr().err


def test_evaluations_are_shown_where_the_training_was(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    monkeypatch.chdir(tmp_path)
    small = ("--envs", "4", "--ppo.steps", "4", "--ppo.epochs", "1", "--ppo.minibatches", "1")
    brief = ("--task.terminations.duration", "0.2", "--threads", "1", "--updates", "1")
    main(["train", "locomotion", *small, *brief, "--out", "run", "--tracker", "tensorboard"])
    assert read_memory(tmp_path / "run") == {"tensorboard": {}}
    main(["eval", "run", "--envs", "1", "--episodes", "1", "--seeds", "101"])
    assert "survival" in capsys.readouterr().out
    found = read_events(tmp_path / "run" / "tensorboard")
    (text,) = found.Tensors("evaluation/text_summary")
    assert b"survival" in text.tensor_proto.string_val[0]
