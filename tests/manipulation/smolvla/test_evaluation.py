"""From a policy of several tasks to episodes, reports, probes and LeRobot's results."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.analysis.probe.contact import read_policy
from prism_motor.cli import main
from prism_motor.manipulation import data
from prism_motor.manipulation.config import HandlingEvaluation
from prism_motor.manipulation.lerobot_results import read_eval_info
from prism_motor.manipulation.policy import load_policy
from prism_motor.manipulation.tasks import find_tasks
from prism_motor.report.collect import collect
from prism_motor.train import session
from prism_motor.train.evaluations import Evaluations

from .conftest import STATE, TASKS, make_config

pytestmark = pytest.mark.usefixtures("made_up")


@pytest.fixture(scope="module", autouse=True)
def _short_episodes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            data,
            "find_tasks",
            lambda *tasks: tuple(replace(one, horizon=10) for one in find_tasks(*tasks)),
        )
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory, made_up):
    folder = tmp_path_factory.mktemp("runs")
    for arm in ("prism", "linear"):
        session.train(*session.start(make_config(arm, updates=1), folder / arm))
    return folder


def test_episodes_of_every_task_are_kept_apart(runs):
    asked = HandlingEvaluation(seeds=(3,), episodes=2, conditions=("combined",), traces=True)
    evaluations = Evaluations(runs / "prism", asked)
    try:
        keys = evaluations.missing("combined", 3)
        assert keys == [("metaworld", task, state) for task in TASKS for state in (0, 1)]
        evaluations.measure("combined", 3, [keys[0], keys[3]])
        assert evaluations.missing("combined", 3) == keys[1:3]
        evaluations.measure("combined", 3, keys[1:3])
        assert evaluations.missing("combined", 3) == []
    finally:
        evaluations.close()
    traces = sorted(file.name for file in (runs / "prism" / "evaluations").glob("*.traces/*"))
    numbers = {task.name: task.index for task in find_tasks("metaworld", "+".join(TASKS))}
    assert traces == sorted(
        f"1-metaworld-{numbers[task]}-{state:03d}.npz" for task in TASKS for state in (0, 1)
    )
    one = Evaluations(runs / "prism", replace(asked, tasks=(f"metaworld/{numbers['push-v3']}",)))
    assert [task for _, task, _ in one.read("combined", 3)] == ["push-v3"] * 2 + ["reach-v3"] * 2
    assert {row.task for row in one.found()["combined"]} == {"push-v3"}
    with pytest.raises(ValueError, match="Unknown task of the policy 'metaworld/3'"):
        Evaluations(runs / "prism", replace(asked, tasks=("metaworld/3",)))


@pytest.mark.slow
def test_a_report_of_several_tasks_and_of_lerobots_results(runs, tmp_path, capsys):
    info = tmp_path / "eval_info.json"
    tasks = find_tasks("metaworld", "+".join(TASKS))
    info.write_text(json.dumps({"per_task": [
        {"task_group": "metaworld", "task_id": task.index,
         "metrics": {"sum_rewards": [1.0, 0.0], "max_rewards": [1.0, 0.0],
                     "successes": [True, place == 0], "video_paths": []}}
        for place, task in enumerate(tasks)
    ], "per_group": {}, "overall": {}}))  # fmt: skip
    for arm in ("prism", "linear"):
        main(["eval", str(runs / arm), "--episodes", "1"])
    main(["eval", str(runs / "prism"), "--read", str(info), "--seeds", "1000"])
    assert "4 episodes of lerobot-eval" in capsys.readouterr().out
    (record,) = [one for one in collect(runs).runs if one.config.arm == "prism"]
    by = {str(one.execution): one for one in record.evaluations if one.condition == "none"}
    assert len(by) == 2
    theirs = next(one for one in by.values() if one.seed == 1000)
    assert theirs.execution.setting == "lerobot-eval"
    assert [row["success"] for row in theirs.episodes].count(True) == 3
    main(["report", str(runs)])
    said = capsys.readouterr().out
    assert "lerobot-eval" in said
    assert "metaworld" in said


def test_results_that_are_not_those_of_the_policy(tmp_path):
    file = tmp_path / "eval_info.json"
    tasks = find_tasks("metaworld", "+".join(TASKS))
    with pytest.raises(ValueError, match="cannot be read"):
        read_eval_info(file, tasks)
    file.write_text("{}")
    with pytest.raises(ValueError, match="is not what lerobot-eval writes"):
        read_eval_info(file, tasks)
    row = {"task_group": "libero_goal", "task_id": 1, "metrics": {"successes": [True]}}
    file.write_text(json.dumps({"per_task": [row]}))
    with pytest.raises(ValueError, match=r"libero_goal/1, which the policy did not learn"):
        read_eval_info(file, tasks)
    row |= {"task_group": "metaworld", "task_id": tasks[0].index}
    file.write_text(json.dumps({"per_task": [row, row]}))
    with pytest.raises(ValueError, match="twice"):
        read_eval_info(file, tasks)
    row["metrics"] = {"successes": [1.0]}
    file.write_text(json.dumps({"per_task": [row]}))
    with pytest.raises(ValueError, match="not booleans"):
        read_eval_info(file, tasks)


def test_probes_read_the_state_conditioner(runs):
    import numpy as np
    import torch

    states = np.random.default_rng(0).random((5, STATE)).astype(np.float32)
    policy = load_policy(runs / "prism")
    found = read_policy(policy, states)
    assert list(found) == ["raw", "first_order", "polynomial", "conditioner"]
    mean, std = (
        next(s for s in policy.normalise.steps if hasattr(s, "_tensor_stats"))
        ._tensor_stats["observation.state"][name]
        .numpy()
        for name in ("mean", "std")
    )
    padded = np.zeros((5, 32), dtype=np.float32)
    padded[:, :STATE] = (states - mean) / (std + 1e-8)
    with torch.no_grad():
        expected = policy.network.model.state_proj(torch.from_numpy(padded)).numpy()
    np.testing.assert_allclose(found["conditioner"], expected, atol=1e-5)
    assert list(read_policy(load_policy(runs / "linear"), states)) == ["raw", "conditioner"]


@pytest.mark.slow
def test_probe_of_a_policy_of_several_tasks(runs, capsys):
    words = ["--episodes", "2", "--task", "metaworld/0"]
    with pytest.raises(SystemExit):
        main(["probe", str(runs / "prism"), *words])
    assert "Unknown task of the policy 'metaworld/0'" in capsys.readouterr().err
