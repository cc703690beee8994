"""Every number of the paper about LIBERO, written literally: Tables 9, 12 and 15, A.2, A.4, A.5."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prism_motor.campaigns.files import find_campaign
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.manipulation.compliance import COMPLIANCE, ComplianceCorrector, choose_trial
from prism_motor.manipulation.compliance import ComplianceTrial as Trial
from prism_motor.manipulation.config import HandlingEvaluation
from prism_motor.manipulation.contact import AFTER, BEFORE, THRESHOLD
from prism_motor.manipulation.environment import Physics
from prism_motor.manipulation.presets import ARMS, make_config
from prism_motor.manipulation.rollout import PERTURBATIONS
from prism_motor.runs.configs import flatten, to_dict

TABLE_9 = {
    "network.image_size": 128,
    "network.observation_steps": 2,
    "network.horizon": 16,
    "network.action_steps": 8,
    "network.noise_steps": 100,
    "network.inference_steps": 10,
    "network.widths": [128, 256, 512],
    "batch": 64,
    "optimiser.learning_rate": 1e-4,
    "optimiser.weight_decay": 1e-6,
    "updates": 20_000,
    "checkpoint_every": 10_000,
}
"""Shared Diffusion Policy configuration on LIBERO."""


@pytest.mark.parametrize(("key", "value"), TABLE_9.items())
@pytest.mark.parametrize("arm", ARMS)
def test_table_9(arm, key, value):
    assert flatten(to_dict(make_config("paper", arm)))[key] == value


def test_table_9_latent_width_and_rollouts():
    prism = make_config("paper", "prism").conditioner
    assert (prism.kind, prism.latent, prism.degree) == ("prism", 256, 2)
    domain = DOMAINS["manipulation"]
    assert domain.protocol("paper").episodes == 10
    assert {domain.protocol(name).episodes for name in ("laptop", "state")} == {20}
    assert HandlingEvaluation().episodes == 20


def test_table_9_optimiser_is_adamw(tmp_path):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    from prism_motor.manipulation.config import HandlingTask
    from prism_motor.manipulation.diffusion.network import make_policy_config

    task = HandlingTask("libero_goal", "turn_on_the_stove", 8, 8, 7, ("agentview",))
    config = replace(make_config("paper", "prism"), task=task)
    optimiser = make_policy_config(config).get_optimizer_preset()
    assert type(optimiser).__name__ == "AdamWConfig"
    assert (optimiser.lr, optimiser.weight_decay) == (1e-4, 1e-6)


TABLE_12 = {
    "mcc-sensorless": {
        "source": "actuators",
        "gain": 0.015,
        "delay": 2,
        "smoothing": 0.90,
        "noise": 0.15,
        "damping": 1e-4,
        "clip": 0.05,
    },
    "mcc-oracle": {
        "source": "contacts",
        "gain": 0.015,
        "delay": 0,
        "smoothing": 0.90,
        "noise": 0.0,
        "damping": 1e-4,
        "clip": 0.05,
    },
}
"""MCC evaluation-time parameters; the controller's are in the campaigns."""


@pytest.mark.parametrize("name", TABLE_12)
def test_table_12(name):
    assert to_dict(COMPLIANCE[name]) == TABLE_12[name]
    assert set(COMPLIANCE) == set(TABLE_12)


@pytest.mark.parametrize("name", ["libero40", "perturbed"])
def test_table_12_controller(name, libero):
    """Both MCC rows have Kp 50 and a damping ratio of one, around LeRobot's own policy alone."""
    from prism_motor.manipulation.tasks import find_task, make_environment

    made = find_campaign(name)[0]
    rows = {
        arm.name: [(one.corrector, one.stiffness) for one in made.protocols(arm)]
        for arm in made.arms
    }
    sensorless, oracle = ("mcc-sensorless", 50.0), ("mcc-oracle", 50.0)
    corrected = [sensorless, oracle] if name == "libero40" else [sensorless]
    assert rows.pop("linear") == [("none", None), ("none", 50.0), *corrected]
    assert all(one == [("none", None)] for one in rows.values())
    environment = make_environment(find_task("libero_goal", 7), cameras=(), stiffness=50.0)
    environment.reset(initial_state=0, images=False)
    controller = environment.problem.robots[0].controller
    environment.close()
    assert np.all(controller.kp == 50.0)
    assert np.all(controller.kd == 2 * np.sqrt(50.0) * 1.0)


def test_the_correction_of_a_4():
    """a[:3] - k_f f_{t-d}, where (J J^T + eps I) f = J tau, with the numbers of Table 12."""
    jacobian = np.random.default_rng(0).normal(size=(6, 7))
    torques = np.random.default_rng(1).normal(size=7)
    physics = Physics(
        np.zeros(3), jacobian=jacobian, joint_torques=torques, bias_torques=np.zeros(7)
    )
    linear = jacobian[:3]
    force = np.linalg.inv(linear @ linear.T + 1e-4 * np.eye(3)) @ (linear @ torques)
    config = COMPLIANCE["mcc-sensorless"]
    corrector = ComplianceCorrector(type(config)(**{**TABLE_12["mcc-sensorless"], "noise": 0.0}))
    corrector.reset(0)
    averages = [0.1 * force]
    for step in range(6):
        executed = corrector.correct(np.zeros(7), physics)
        late = averages[step - 2] if step >= 2 else np.zeros(3)
        assert executed[:3] == pytest.approx(-np.clip(0.015 * late, -0.05, 0.05))
        assert not executed[3:].any()
        averages.append(0.9 * averages[-1] + 0.1 * force)


def test_hyperparameters_are_chosen_by_success_and_then_by_impulse():
    config = COMPLIANCE["mcc-sensorless"]
    trials = [Trial(config, 10, 6, 1.0), Trial(config, 10, 7, 9.0), Trial(config, 10, 7, 5.0)]
    assert choose_trial(trials) is trials[2]


PERTURBED = {
    "none": {"delay": 0, "state_noise": 0.0, "image_noise": 0.0},
    "delay": {"delay": 1, "state_noise": 0.0, "image_noise": 0.0},
    "proprioception": {"delay": 0, "state_noise": 0.01, "image_noise": 0.0},
    "image": {"delay": 0, "state_noise": 0.0, "image_noise": 0.05},
    "combined": {"delay": 1, "state_noise": 0.01, "image_noise": 0.03},
}
"""Evaluation-time perturbations, the columns of Table 15."""


def test_perturbations():
    assert {name: to_dict(one) for name, one in PERTURBATIONS.items()} == PERTURBED


def test_contact_facts():
    assert (THRESHOLD, BEFORE, AFTER) == (5.0, 8, 8)


def test_campaign_of_tables_2_and_13():
    pytest.importorskip("libero", reason="LIBERO is not installed")
    made = find_campaign("libero40")[0]
    assert (made.preset, made.seeds) == ("paper", (1, 2, 3, 4, 5))
    assert (made.evaluation.conditions, made.evaluation.episodes) == (("none",), 10)
    assert find_campaign("libero40", "state")[0].evaluation.episodes == 20
    assert [arm.name for arm in made.arms] == ["linear", "mlp-matched", "mlp-large", "prism"]
    tasks = [
        (settings["task.suite"], settings["task.name"])
        for settings in map(made.variant_overrides, made.variants)
    ]
    suites = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
    assert tasks == [(suite, str(number)) for suite in suites for number in range(10)]


def test_campaign_of_table_15():
    """spatial:1, object:3, goal:7 and long:1, in LIBERO's own order of tasks."""
    pytest.importorskip("libero", reason="LIBERO is not installed")
    from prism_motor.manipulation.tasks import find_task

    made = find_campaign("perturbed")[0]
    assert made.evaluation.conditions == tuple(PERTURBED)
    assert [arm.name for arm in made.arms] == ["linear", "mlp-matched", "prism"]
    assert made.seeds == (1, 2, 3, 4, 5)
    named = [made.variant_overrides(variant) for variant in made.variants]
    tasks = [find_task(one["task.suite"], one["task.name"]) for one in named]
    assert [(task.suite, task.index) for task in tasks] == [
        ("libero_spatial", 1), ("libero_object", 3), ("libero_goal", 7), ("libero_10", 1)
    ]  # fmt: skip
    assert [task.instruction for task in tasks] == [
        "pick up the black bowl next to the ramekin and place it on the plate",
        "pick up the bbq sauce and place it in the basket",
        "turn on the stove",
        "put both the cream cheese box and the butter in the basket",
    ]
    assert len(tasks) * made.evaluation.episodes == 20  # rollouts per condition


@pytest.mark.slow
def test_the_preset_from_demonstrations_to_the_report(libero, tmp_path, monkeypatch, capsys):
    """At full size except for batch and time: record, train, evaluate, correct, report."""
    from prism_motor.manipulation import data
    from prism_motor.manipulation.tasks import find_tasks

    def prism(*words):
        main([str(word) for word in words])
        return capsys.readouterr().out

    task, demos, runs = (
        ("--suite", "libero_goal", "--task", 7),
        tmp_path / "demos",
        tmp_path / "runs",
    )
    prism(
        "record", *task, "--episodes", 1, "--image-size", 128, "--renderer", "stock", "--out", demos
    )
    small = ("--batch", 2, "--updates", 1, "--threads", 1)
    for arm in ("linear", "prism"):
        prism("train", "manipulation", "--preset", "paper", *task, "--demos", demos, "--arm", arm,
              *small, "--out", runs / arm)  # fmt: skip
    saved = json.loads((runs / "prism" / "config.json").read_text())
    assert saved["network"]["renderer"] == "stock"
    assert saved["task"]["cameras"] == ["agentview", "robot0_eye_in_hand"]
    monkeypatch.setattr(
        data, "find_tasks", lambda *of: tuple(replace(one, horizon=10) for one in find_tasks(*of))
    )
    short = ("--episodes", 1, "--conditions", "none", "combined")
    for arm in ("linear", "prism"):
        prism("eval", runs / arm, *short)
    prism("eval", runs / "linear", *short, "--corrector", "mcc-sensorless", "--stiffness", 50)
    shown = prism("report", runs)
    assert "linear + mcc-sensorless, Kp 50" in shown
    assert "prism" in shown
