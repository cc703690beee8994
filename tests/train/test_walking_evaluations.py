"""Evaluations in run folders, and ``prism eval``."""

import json
import math
from dataclasses import replace

import pytest
import torch

from prism_motor.cli import main
from prism_motor.cli.evaluate import WALKING_SEEDS
from prism_motor.locomotion.evaluation import Protocol
from prism_motor.locomotion.presets import make_config
from prism_motor.runs import Run, to_dict
from prism_motor.train import walking_session as session
from prism_motor.train.walking_evaluations import Evaluations, hash_weights

TINY = ["--envs", "3", "--episodes", "2"]


def config():
    full = make_config("laptop", "gated", seed=3)
    limits = replace(full.task.terminations, duration=0.2)
    return replace(
        full,
        ppo=replace(full.ppo, steps=4, epochs=1, minibatches=2),
        envs=8,
        checkpoint_every=1,
        task=replace(full.task, terminations=limits),
    )


@pytest.fixture
def run(tmp_path):
    run, trainer = session.start(config(), tmp_path / "run")
    session.train(run, trainer, 2)
    return tmp_path / "run"


@pytest.fixture
def no_simulation(monkeypatch):
    """Refuse to build environments: what is wrong must be said before."""

    def build(*_, **__):
        raise AssertionError("a simulation was started")

    monkeypatch.setattr("prism_motor.locomotion.evaluation.make_env", build)


def error_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main(["eval", *map(str, words)])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_files_hold_every_episode_and_where_it_came_from(run):
    evaluations = Evaluations(run, Protocol(3, 2))
    episodes = evaluations.measure("payload", 101)
    data = json.loads((run / "evaluations" / "payload-101.json").read_text())
    assert data["schema"] == 1
    assert data["checkpoint"] == 2
    assert data["condition"]["randomisation"]["mass_scale"] == 1.15
    assert data["condition"]["observation_noise"] == 0.0
    assert data["protocol"] == {"envs": 3, "episodes": 2}
    assert len(data["policy_sha256"]) == 64
    assert data["provenance"]["packages"]["mujoco"]
    assert len(data["episodes"]) == 6
    row = data["episodes"][3]
    assert (row["arm"], row["training_seed"], row["evaluation_seed"]) == ("gated", 3, 101)
    assert (row["condition"], row["environment"], row["episode"]) == ("payload", 1, 1)
    assert row["linear_error"] == episodes[3].linear_error
    assert evaluations.read("payload", 101) == episodes


def test_only_what_is_missing_is_planned(run):
    evaluations = Evaluations(run, Protocol(3, 1))
    wanted = ["nominal", "training"], [101, 102]
    assert len(evaluations.plan(*wanted)) == 4
    evaluations.measure("nominal", 102)
    left = evaluations.plan(*wanted)
    assert left == [("nominal", 101), ("training", 101), ("training", 102)]
    assert len(evaluations.plan(*wanted, again=True)) == 4
    # Other checkpoints, other protocols and damaged files are other evaluations.
    assert len(Evaluations(run, Protocol(3, 1), step=1).plan(*wanted)) == 4
    assert len(Evaluations(run, Protocol(2, 1)).plan(*wanted)) == 4
    file = run / "evaluations" / "nominal-102.json"
    file.write_text(file.read_text()[:500])
    assert len(evaluations.plan(*wanted)) == 4


def test_other_weights_under_the_same_step_are_evaluated_again(run):
    Evaluations(run, Protocol(3, 1)).measure("nominal", 101)
    folder = Run.open(run)
    checkpoint = folder.load()
    name = next(n for n in checkpoint.tensors if n.startswith("actor.mlp") and "weight" in n)
    checkpoint.tensors[name][0, 0] += 1e-3
    folder.save(checkpoint.step, checkpoint.tensors, checkpoint.state)
    assert Evaluations(run, Protocol(3, 1)).plan(["nominal"], [101]) == [("nominal", 101)]


def test_the_hash_sees_values_names_and_shapes():
    one = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)}
    assert hash_weights(one) == hash_weights(dict(reversed(one.items())))
    for other in (
        {"a": torch.tensor([1.0, 2.5]), "b": torch.tensor(3)},
        {"c": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)},
        {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor(3)},
    ):
        assert hash_weights(other) != hash_weights(one)


def test_torch_threads_are_given_back(run):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    Evaluations(run, Protocol(1, 1)).measure("nominal", 101)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_command_prints_a_table_and_does_nothing_twice(run, capsys):
    words = ["eval", str(run), "--conditions", "nominal", "low-friction", "--seeds", "101", "102"]
    main([*words, *TINY])
    first = capsys.readouterr().out
    assert "low-friction, seed 102: 6 of 6 episodes survived" in first
    assert "gated on laptop, training seed 3, checkpoint 2" in first
    lines = {line.split("  ")[0]: line for line in first.splitlines()}
    assert lines["episodes"].split() == ["episodes", "12", "12"]
    low = 100 * 12 / (12 + 1.959963984540054**2)  # Wilson, everybody survived
    assert f"100.0 [{low:.1f}, 100.0]" in lines["survival, %"]
    stored = (run / "evaluations" / "nominal-101.json").read_text()
    main([*words, *TINY])
    second = capsys.readouterr().out
    assert "4 evaluations are done already" in second
    assert second.split("\n\n", 1)[1] == first.split("\n\n", 1)[1]
    assert (run / "evaluations" / "nominal-101.json").read_text() == stored
    assert math.isfinite(json.loads(stored)["episodes"][0]["episode_return"])


def test_the_default_is_the_published_protocol():
    assert (Protocol().envs, Protocol().episodes) == (100, 2)
    assert WALKING_SEEDS == (101, 102, 103)
    # No training environment has such a seed.
    assert max(WALKING_SEEDS) < 1000 * make_config("laptop", "mlp").seed


@pytest.mark.usefixtures("no_simulation")
def test_mistakes_are_reported_before_any_simulation(run, tmp_path, capsys):
    assert "There is no run at" in error_of(capsys, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "not a run folder" in error_of(capsys, tmp_path / "empty")
    Run.create(tmp_path / "fresh", to_dict(config()))
    assert "no complete checkpoint yet" in error_of(capsys, tmp_path / "fresh")
    message = error_of(capsys, run, "--conditions", "nominal", "low-frictoin")
    assert "Did you mean 'low-friction'" in message
    assert "has no checkpoint 7; there are: [0, 1, 2]" in error_of(capsys, run, "--checkpoint", 7)
    assert "envs must be at least 1" in error_of(capsys, run, "--envs", 0)
    assert "--threads must be at least 1" in error_of(capsys, run, "--threads", 0)
    assert "each once; got [101, 101]" in error_of(capsys, run, "--seeds", 101, 101)
    assert "not be negative, got -1" in error_of(capsys, run, "--seeds", -1)
    assert not list((run / "evaluations").glob("*"))
