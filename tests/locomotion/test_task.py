"""Settings that make no sense are refused by the name of the field."""

import json
from dataclasses import dataclass, replace

import pytest

from prism_motor._checks import InputError
from prism_motor.locomotion.legged import LeggedEnv
from prism_motor.locomotion.task import (
    TASK_KINDS,
    ActionConfig,
    CommandConfig,
    GaitConfig,
    LeggedTaskConfig,
    ObservationConfig,
    RandomisationConfig,
    RewardConfig,
    SimulationConfig,
    TaskConfig,
    TerminationConfig,
    find_config_type,
    register_task_kind,
)
from prism_motor.locomotion.tasks import TASKS
from prism_motor.runs import from_dict, to_dict


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        (SimulationConfig, "timestep", 0.0),
        (SimulationConfig, "timestep", float("nan")),
        (SimulationConfig, "substeps", 0),
        (CommandConfig, "forward", (5.0, 1.0)),
        (CommandConfig, "heading", (1.0, -1.0)),
        (CommandConfig, "resample_after", 0.0),
        (CommandConfig, "deadband", -0.1),
        (GaitConfig, "cycle", 0.0),
        (GaitConfig, "offsets", ()),
        (GaitConfig, "swing", ((0, 2, 1.0),)),
        (ActionConfig, "scale", 0.0),
        (ActionConfig, "clip", -1.0),
        (ObservationConfig, "actor_frames", 0),
        (ObservationConfig, "critic_frames", -1),
        (ObservationConfig, "joint_noise", -0.1),
        (ObservationConfig, "noise", -1.0),
        (ObservationConfig, "mass_scale", 0.0),
        (RewardConfig, "feet_distance", (0.5, 0.2)),
        (RewardConfig, "weights", {"torques": float("nan")}),
        (RewardConfig, "weights", ["torques"]),
        (RewardConfig, "parameters", {"hop": 3.0}),
        (RewardConfig, "parameters", {"hop": {"height": "tall"}}),
        (RewardConfig, "abduction_joints", ((-1,),)),
        (RandomisationConfig, "friction", (0.0, 1.0)),
        (RandomisationConfig, "friction", (1.0, 0.5)),
        (RandomisationConfig, "base_mass", (1.0, -1.0)),
        (RandomisationConfig, "mass_scale", 0.0),
        (RandomisationConfig, "action_delay", 1.5),
        (RandomisationConfig, "push_every", -1.0),
        (TerminationConfig, "duration", 0.0),
        (TerminationConfig, "roll", 0.0),
        (TerminationConfig, "base_force", -1.0),
        (TaskConfig, "start_height", 0.0),
        (TaskConfig, "start_joint_noise", -0.1),
    ],
)
def test_nonsense_is_refused_by_name(part, field, value):
    with pytest.raises(InputError, match=rf"task.*{field}"):
        part(**{field: value})


def test_times_shorter_than_a_control_step_are_refused():
    laptop = TASKS["laptop"]
    with pytest.raises(InputError, match=r"terminations.duration must be at least 0.02, got 0.001"):
        replace(laptop, terminations=TerminationConfig(duration=0.001))
    with pytest.raises(InputError, match=r"randomisation.push_every must be at least 0.02"):
        replace(laptop, randomisation=RandomisationConfig(push_every=0.001))
    with pytest.raises(InputError, match=r"commands.resample_after must be at least 0.02"):
        replace(laptop, commands=CommandConfig(resample_after=0.001))


def test_every_foot_that_moves_joints_has_a_phase():
    for name, entry in (("swing", (0, 2, 1.0)), ("stride", (0, 2, 0, 1.0))):
        with pytest.raises(
            ValueError, match=rf"gait\.{name} moves joint 0 with foot 2; .* 0 to 1,"
        ):
            GaitConfig(**{name: (entry,)})


def test_tasks_from_before_strides_march_in_place():
    written = json.loads(json.dumps(to_dict(TASKS["g1"])))
    del written["gait"]["stride"]
    assert LeggedTaskConfig.from_dict(written) == TASKS["g1"]


def test_weights_are_read_as_pairs_and_written_by_name():
    old = RewardConfig(weights=[["torques", -1], ["dof_vel", 0.5]])
    assert old.weights == {"torques": -1.0, "dof_vel": 0.5}
    assert list(old.weights) == ["torques", "dof_vel"]
    written = json.loads(json.dumps(to_dict(old)))
    assert written["weights"] == {"torques": -1.0, "dof_vel": 0.5}
    assert from_dict(RewardConfig, written) == old


@pytest.mark.parametrize("name", sorted(TASKS.own))
def test_the_tasks_of_the_package_survive_being_written(name):
    data = json.loads(json.dumps(to_dict(TASKS[name])))
    assert data["kind"] == "velocity"
    assert TaskConfig.from_dict(data) == TASKS[name]
    del data["kind"]  # runs of earlier versions have none
    assert TaskConfig.from_dict(data) == TASKS[name]
    assert from_dict(TaskConfig, data) == TASKS[name]


@pytest.fixture
def balance():
    """A kind of task with a field of its own."""

    @dataclass(frozen=True)
    class BalanceTask(LeggedTaskConfig):
        kind: str = "balance"
        tilt: float = 0.1

    class BalanceEnv(LeggedEnv):
        config_type = BalanceTask

    register_task_kind("balance", BalanceEnv)
    yield BalanceTask, BalanceEnv
    TASK_KINDS.remove("balance")


def test_the_kind_chooses_the_class(balance):
    task_type, env_type = balance
    task = TaskConfig.from_dict({"kind": "balance", "robot": "quadruped", "tilt": 1})
    assert type(task) is task_type
    assert task.tilt == 1.0
    assert find_config_type("velocity") is TaskConfig
    with pytest.raises(InputError, match=r"unknown key 'tilts'.*'tilt'"):
        TaskConfig.from_dict({"kind": "balance", "tilts": 1.0})
    with pytest.raises(InputError, match=r"kind of task 'balanc'.*--plugin"):
        TaskConfig.from_dict({"kind": "balanc"})
    with pytest.raises(InputError, match=r"built-in kind of task called 'velocity'"):
        register_task_kind("velocity", type("E", (LeggedEnv,), {"config_type": TaskConfig}))
    with pytest.raises(InputError, match=r"BalanceTask.kind is 'balance' by default"):
        register_task_kind("other", env_type)
    with pytest.raises(InputError, match=r"config_type must be a dataclass"):
        register_task_kind("other", type("E", (), {}))
