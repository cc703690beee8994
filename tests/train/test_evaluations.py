"""Evaluations of every domain: kept in run folders, done once, recognised for what they are."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch

from prism_motor.domains import DOMAINS, open_run
from prism_motor.runs import Run, RunError
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.shipped import SHIPPED, shipped_names
from prism_motor.train import session
from prism_motor.train.evaluations import Evaluations


@pytest.fixture
def run(case, tmp_path):
    """A run with checkpoints after the first and the second update."""
    session.train(*session.start(case.make(updates=2, checkpoint_every=1), tmp_path / "run"))
    return tmp_path / "run"


def measure(path, evaluation, **options):
    """Do all that is missing and return it by (condition, seed)."""
    evaluations = Evaluations(path, evaluation, **options)
    try:
        return {
            pair: evaluations.measure(*pair, evaluations.missing(*pair))
            for pair in evaluation.pairs
        }
    finally:
        evaluations.close()


def count_missing(path, evaluation, **options):
    evaluations = Evaluations(path, evaluation, **options)
    return sum(len(evaluations.missing(*pair)) for pair in evaluation.pairs)


def test_files_hold_every_episode_and_where_it_came_from(case, run):
    plain, changed = case.conditions[0], case.conditions[-1]
    found = measure(run, case.evaluation(conditions=(changed,)))[changed, 101]
    assert len(found) == 2
    data = json.loads((run / "evaluations" / f"{changed}-101.json").read_text())
    assert (data["schema"], data["evaluation_seed"], data["checkpoint"]) == (1, 101, 2)
    assert data["condition"]["name"] == changed
    assert data["policy_sha256"] == hash_weights(Run.open(run).weights(DOMAINS[case.name].weights))
    assert data["provenance"]["packages"]["mujoco"]
    assert len(data["episodes"]) == 2
    for row, episode in zip(data["episodes"], found.values(), strict=True):
        assert (row["arm"], row["training_seed"]) == ("prism", 3)
        assert row == {**row, **vars(episode)}
    evaluations = Evaluations(run, case.evaluation(conditions=case.conditions))
    assert evaluations.read(changed, 101) == found
    assert evaluations.found() == {plain: [], changed: list(found.values())}
    assert evaluations.count_done() == 1


def test_only_what_is_missing_is_done(case, run):
    both = case.evaluation(conditions=case.conditions, seeds=(101, 102))
    total = 4 * len(case.conditions)
    assert count_missing(run, both) == total
    first = measure(run, case.evaluation(seeds=(102,)))
    assert count_missing(run, both) == total - 2
    evaluations = Evaluations(run, both)
    plain = case.conditions[0]
    assert len(evaluations.missing(plain, 102, again=True)) == 2
    # Another checkpoint is another policy; a damaged file is none.
    assert count_missing(run, both, step=1) == total
    file = run / "evaluations" / f"{plain}-102.json"
    whole = file.read_text()
    file.write_text(whole[:300])
    assert count_missing(run, both) == total
    file.write_text(whole)
    assert measure(run, both)[plain, 102] == {}
    assert count_missing(run, both) == 0
    assert evaluations.read(plain, 102) == first[plain, 102]


def test_the_same_policy_gives_the_same_episodes_again(case, run):
    evaluation = case.evaluation()
    (pair,) = evaluation.pairs
    first = measure(run, evaluation)[pair]
    evaluations = Evaluations(run, evaluation)
    again = evaluations.measure(*pair, evaluations.missing(*pair, again=True), again=True)
    evaluations.close()
    assert again == first


def test_other_weights_under_the_same_step_are_another_policy(case, run):
    measure(run, case.evaluation())
    assert count_missing(run, case.evaluation()) == 0
    folder = Run.open(run)
    checkpoint = folder.load()
    prefix = DOMAINS[case.name].weights
    name = next(n for n in checkpoint.tensors if n.startswith(prefix) and n.endswith("weight"))
    checkpoint.tensors[name].flatten()[0] += 1e-3
    folder.save(checkpoint.step, checkpoint.tensors, checkpoint.state)
    assert count_missing(run, case.evaluation()) == 2


def test_progress_is_reported_up_to_what_was_announced(case, run):
    evaluations = Evaluations(run, case.evaluation())
    (pair,) = case.evaluation().pairs
    calls = Counter()
    keys = evaluations.missing(*pair)
    announced = evaluations.steps(keys)
    evaluations.measure(*pair, keys, report=lambda: calls.update(["step"]))
    evaluations.close()
    assert 0 < calls["step"] <= announced
    assert evaluations.steps([]) == 0


def test_torch_threads_are_given_back(case, run):
    torch.set_num_threads(2)
    try:
        measure(run, case.evaluation())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_mistakes_are_found_before_any_simulation(case, run, tmp_path, monkeypatch):
    def build(*_):
        raise AssertionError("a simulation was started")

    monkeypatch.setattr(type(DOMAINS[case.name]), "evaluator", build)
    with pytest.raises(RunError, match="No run found at"):
        Evaluations(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"has no checkpoint 7; available: \[0, 1, 2\]"):
        Evaluations(run, step=7)
    with pytest.raises(ValueError, match="Unknown condition 'nominall'"):
        Evaluations(run, case.evaluation(conditions=("nominall",)))
    for changes, message in (
        ({"conditions": ()}, "conditions: give at least one"),
        ({"seeds": (101, 101)}, "seeds must be unique; repeated: 101"),
        ({"seeds": (-1,)}, r"seeds\[0\] must be from 0"),
        ({"episodes": 0}, "episodes must be from 1"),
        ({"threads": 0}, "threads must be from 1"),
    ):
        with pytest.raises(ValueError, match=message):
            case.evaluation(**changes)


def test_the_defaults_are_the_published_protocol():
    walking = DOMAINS["locomotion"].evaluation()
    assert (walking.conditions, walking.seeds) == (("nominal",), (101, 102, 103))
    assert (walking.envs, walking.episodes) == (100, 2)
    handling = DOMAINS["manipulation"].evaluation()
    assert (handling.conditions, handling.seeds, handling.episodes) == (("none",), (101,), 20)


def test_the_hash_sees_values_names_and_shapes():
    one = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)}
    assert hash_weights(one) == hash_weights(dict(reversed(one.items())))
    for other in (
        {"a": torch.tensor([1.0, 2.5]), "b": torch.tensor(3)},
        {"c": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)},
        {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor(3)},
    ):
        assert hash_weights(other) != hash_weights(one)


# Specific to a domain ---------------------------------------------------------------------------


@pytest.fixture
def walking(request, tmp_path):
    from tests.train.cases import CASES

    case = CASES["locomotion"]
    session.train(*session.start(case.make(updates=1), tmp_path / "walking"))
    return tmp_path / "walking"


def test_walking_says_the_condition_in_numbers_and_counts_environments(walking):
    from tests.train.cases import evaluate_walking

    evaluation = evaluate_walking(conditions=("payload",), envs=3, episodes=2)
    found = measure(walking, evaluation)["payload", 101]
    assert list(found) == [(env, episode) for env in range(3) for episode in range(2)]
    data = json.loads((walking / "evaluations" / "payload-101.json").read_text())
    assert data["condition"]["randomisation"]["mass_scale"] == 1.15
    assert data["condition"]["observation_noise"] == 0.0
    assert data["protocol"] == {"envs": 3, "episodes": 2}
    # Another number of environments is another protocol: they share random numbers.
    assert count_missing(walking, replace(evaluation, envs=2)) == 4


@pytest.mark.skipif(not shipped_names(), reason="this package ships no policy")
@pytest.mark.parametrize("name", shipped_names())
def test_stored_evaluations_of_shipped_policies_count_as_done(name):
    files = sorted((SHIPPED / name / "evaluations").glob("*.json"))
    assert files
    pairs = [file.stem.rsplit("-", 1) for file in files]
    conditions = tuple(dict.fromkeys(condition for condition, _ in pairs))
    seeds = tuple(dict.fromkeys(int(seed) for _, seed in pairs))
    _, domain, config = open_run(name)
    evaluations = Evaluations(name, domain.evaluation(conditions=conditions, seeds=seeds))
    assert evaluations.count_done() == len(files)
    # Two hundred walks, or every clip of the training once.
    each = 200 if domain.name == "locomotion" else len(config.task.clips)
    assert all(len(episodes) == each * len(seeds) for episodes in evaluations.found().values())
