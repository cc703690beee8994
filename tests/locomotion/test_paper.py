"""Every number of the paper's Tables 6, 7 and 8, once, against preset ``paper``.

Values are written as the paper prints them. What it does not print and a result depends on (the
rest of PPO, the constants of Humanoid-Gym's rewards) follows below.
"""

import json
from dataclasses import asdict, fields

import pytest

from prism_motor.cli import main
from prism_motor.locomotion.observations import frame_of, observation_size
from prism_motor.locomotion.presets import MATCHED, arm_names, control_of, make_config
from prism_motor.locomotion.tasks import TASKS
from prism_motor.nn import build_actor, count_parameters
from prism_motor.sim.robots import make_robot

CONFIG = make_config("paper", "prism-residual")  # the actor of Tables 1 and 8
TASK, PPO = CONFIG.task, CONFIG.ppo
LEG = make_robot(TASK.robot).joints[:6]  # hip pitch, roll, yaw, knee, ankle pitch, roll

TABLE_6 = {
    "actor observation": ((15, 47), (TASK.observations.actor_frames, frame_of(TASK).actor_size)),
    "critic observation": ((3, 73), (TASK.observations.critic_frames, frame_of(TASK).critic_size)),
    "action": ((12, 0.25), (observation_size(TASK)[1], TASK.actions.scale)),
    "simulation step": (0.001, TASK.simulation.timestep),
    "control decimation": (10, TASK.simulation.substeps),
    "K_p of hips, knee, ankles": (
        (100, 100, 100, 150, 40, 40), tuple(joint.stiffness for joint in LEG),
    ),
    "K_d of hips, knee, ankles": ((2, 2, 2, 4, 2, 2), tuple(joint.damping for joint in LEG)),
    "v_x": ((-0.3, 0.6), TASK.commands.forward),
    "v_y": ((-0.3, 0.3), TASK.commands.sideways),
    "omega_z": (("rate", (-0.3, 0.3)), (TASK.commands.yaw, TASK.commands.yaw_rate)),
    "learning rate": (1e-5, PPO.learning_rate),
    "gamma": (0.994, PPO.gamma),
    "GAE lambda": (0.9, PPO.gae_lambda),
    "rollout": (60, PPO.steps),
    "epochs": (2, PPO.epochs),
    "minibatches": (4, PPO.minibatches),
    "training iterations": (3001, CONFIG.updates),
    "degree": (2, CONFIG.actor.degree),
    "latent width": (256, CONFIG.actor.latent),
}  # fmt: skip

TABLE_7 = {
    "tracking_lin_vel": 1.2,  # linear velocity
    "tracking_ang_vel": 1.1,  # yaw velocity
    "track_vel_hard": 0.5,  # hard tracking
    "low_speed": 0.2,  # low-speed regulation
    "orientation": 1.0,  # upright orientation
    "base_height": 0.2,
    "vel_mismatch_exp": 0.5,  # velocity consistency
    "base_acc": 0.2,  # base acceleration
    "joint_pos": 1.6,  # joint-pose tracking
    "default_joint_pos": 0.5,  # default joint pose
    "feet_air_time": 1.0,
    "feet_clearance": 1.0,
    "feet_contact_number": 1.2,  # contact number
    "feet_distance": 0.2,
    "knee_distance": 0.2,
    "collision": -1.0,
    "feet_contact_forces": -0.01,  # contact force
    "foot_slip": -0.05,
    "action_smoothness": -0.002,
    "torques": -1e-5,  # torque
    "dof_vel": -5e-4,  # joint velocity
    "dof_acc": -1e-7,  # joint acceleration
}

TABLE_8 = {
    "mlp": ((512, 256, 128), 527_244),
    "mlp-large": ((816, 352, 160), 922_092),
    "prism-residual": ((512, 256, 128), 921_996),
}

# Humanoid-Gym's own values, which the paper keeps without printing them.
ORIGINAL_PPO = {
    "desired_kl": 0.01, "schedule": "adaptive", "clip": 0.2, "clip_value_loss": True,
    "value_weight": 1.0, "entropy_weight": 0.001, "gradient_norm": 1.0, "initial_std": 1.0,
    "normalise_observations": False, "mirror": False, "clip_together": True, "kl_offset": 1e-5,
}  # fmt: skip

ORIGINAL_REWARDS = {
    "base_height": 0.89, "foot_offset": 0.05, "foot_height": 0.06, "contact_force": 700.0,
    "feet_distance": (0.2, 0.5), "knee_distance": (0.2, 0.25), "abduction_joints": ((0, 1), (6, 7)),
}  # fmt: skip

ORIGINAL_RANDOMISATION = {
    # PhysX averages the feet's 0.1..2.0 with the ground's 0.6.
    "friction": (0.35, 1.3), "base_mass": (-5.0, 5.0), "mass_scale": 1.0,
    "push_every": 4.0, "push_velocity": 0.2, "push_angular_velocity": 0.4,
    "action_delay": 0.5, "action_noise": 0.02,
}  # fmt: skip


@pytest.mark.parametrize("row", TABLE_6)
def test_table_6(row):
    printed, found = TABLE_6[row]
    assert found == printed


def test_table_7():
    assert TASK.rewards.weights == TABLE_7
    assert sum(weight < 0 for weight in TABLE_7.values()) == 7
    assert not TASK.rewards.parameters  # functional forms are the released ones


@pytest.mark.parametrize("arm", TABLE_8)
def test_table_8(arm):
    actor = make_config("paper", arm).actor
    hidden, parameters = TABLE_8[arm]
    assert actor.hidden == hidden
    assert count_parameters(build_actor(actor, 705, 12)) == parameters


def test_table_1_counts_the_whole_policy():
    """0.926M, 1.321M and 1.321M are actor, critic and twelve standard deviations."""
    critic = count_parameters(build_actor("mlp", 219, 1, hidden=CONFIG.critic_hidden))
    assert critic == 398_849
    wholes = [parameters + critic + 12 for _, parameters in TABLE_8.values()]
    assert wholes == [926_105, 1_320_953, 1_320_857]
    assert [f"{whole / 1e6:.3f}M" for whole in wholes] == ["0.926M", "1.321M", "1.321M"]


def test_later_and_abstracts_actors():
    counts = {"prism": 724_876, "prism-residual-gated": 922_252, "prism-after": 560_396}
    for arm, expected in counts.items():
        actor = make_config("paper", arm).actor
        assert count_parameters(build_actor(actor, 705, 12)) == expected
    assert make_config("paper", "prism-residual").actor.warmup == 500
    assert make_config("paper", "prism-after").actor.warmup == 500
    assert make_config("paper", "prism-residual-gated").actor.warmup == 0


@pytest.mark.parametrize("arm", [name for name in arm_names() if name.startswith("prism")])
def test_every_prism_actor_has_a_control_of_its_size(arm):
    ours, control = (make_config("paper", one).actor for one in (arm, control_of(arm)))
    sizes = [count_parameters(build_actor(actor, 705, 12)) for actor in (ours, control)]
    assert abs(sizes[1] / sizes[0] - 1) <= 1e-3
    assert control.name == "mlp"
    assert control_of(arm).startswith(MATCHED)


def test_the_rest_of_ppo():
    found = asdict(PPO)
    assert {name: found[name] for name in ORIGINAL_PPO} == ORIGINAL_PPO
    unused = {"final_learning_rate", "decay_samples"}  # of the linear schedule
    printed = {"steps", "epochs", "minibatches", "learning_rate", "gamma", "gae_lambda"}
    assert found.keys() == ORIGINAL_PPO.keys() | unused | printed
    assert (CONFIG.envs, CONFIG.critic_hidden, CONFIG.checkpoint_every) == (
        4096, (768, 256, 128), 100,
    )  # fmt: skip


def test_constants_of_the_rewards_and_of_what_varies():
    rewards = {field.name: getattr(TASK.rewards, field.name) for field in fields(TASK.rewards)}
    assert rewards == {**ORIGINAL_REWARDS, "weights": TABLE_7, "parameters": {}}
    found = {
        field.name: getattr(TASK.randomisation, field.name) for field in fields(TASK.randomisation)
    }
    assert found == ORIGINAL_RANDOMISATION
    gait = TASK.gait
    assert (gait.cycle, gait.amplitude, gait.double_support) == (0.64, 0.17, 0.1)
    assert not gait.from_default_pose
    assert sorted({joint for joint, _, _ in gait.swing}) == [2, 3, 4, 8, 9, 10]
    ends = TASK.terminations
    assert (ends.duration, ends.base_force, ends.roll, ends.pitch, ends.height) == (
        24.0, 1.0, None, None, None,
    )  # fmt: skip
    commands = TASK.commands
    assert (commands.deadband, commands.resample_after) == (0.2, 8.0)
    noise = TASK.observations
    assert (noise.noise, noise.joint_noise, noise.joint_velocity_noise) == (0.6, 0.05, 0.5)
    assert (noise.angular_velocity_noise, noise.orientation_noise) == (0.1, 0.03)


def test_humanoid_gyms_heading_is_there_by_name():
    """Every other task follows a heading, as all did in earlier versions."""
    for name in ("g1", "laptop", "quadruped"):
        commands = TASKS[name].commands
        assert (commands.yaw, commands.heading, commands.heading_gain, commands.yaw_limit) == (
            "heading", (-3.14, 3.14), 0.5, 1.0,
        )  # fmt: skip
    changed = make_config("paper", "mlp", overrides={"task.commands.yaw": "heading"})
    assert changed.task.commands.turn_limit == 1.0
    assert TASK.commands.turn_limit == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arm", "options"),
    [
        ("mlp-large", []),
        ("prism-residual", []),
        ("prism-residual-gated", []),
        ("prism-after", []),
        ("prism", ["--actor.bypass", "command", "clock"]),
    ],
)
def test_the_preset_from_training_to_the_robot(arm, options, tmp_path, capsys):
    """At full size except for environments and time: train, evaluate, report, explain, export."""
    pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    runs, run = tmp_path / "runs", tmp_path / "runs" / arm
    small = ["--envs", "8", "--updates", "2", "--ppo.steps", "4", "--threads", "1"]
    short = ["--task.terminations.duration", "1.0"]

    def prism(*words):
        main([str(word) for word in words])
        return capsys.readouterr().out

    prism("train", "locomotion", "--preset", "paper", "--arm", arm, *small, *short, *options,
          "--out", run)  # fmt: skip
    saved = json.loads((run / "config.json").read_text())
    assert saved["actor"].get("bypass", []) == options[1:]
    assert saved["task"]["commands"]["yaw"] == "rate"
    prism("eval", run, "--envs", "2", "--episodes", "1", "--seeds", "101")
    assert arm in prism("report", runs)
    if arm != "mlp-large":
        prism("explain", run, "--envs", "2", "--seconds", "1", "--states", "8", "--draws", "1",
              "--no-closed-loop")  # fmt: skip
        found = json.loads((run / "analysis" / "explain" / "explain.json").read_text())
        names = [product["inputs"] for product in found["products"]]
        assert all("[t" in name for pair in names for name in pair)
        if options:
            assert not any("clock" in name or "command" in name for pair in names for name in pair)
    prism("probe", run, "--envs", "6", "--seconds", "1")
    prism("export", run)
    contract = json.loads((run / "export" / "contract.json").read_text())
    assert contract["command"]["ranges"]["yaw_rate"] == [-0.3, 0.3]
    assert "survived" in prism("sim2sim", run / "export", "--seconds", "0.2")
