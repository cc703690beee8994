"""The runner does what the training environment does."""

import copy
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from prism_motor.export import runner
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.gait import Gait
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.task import RandomisationConfig
from prism_motor.locomotion.tasks import TASKS
from prism_motor.sim.robots import make_robot

COMMANDS = np.array([[0.4, 0.0, 0.5]])


class Recorded:
    """One episode of the training environment, without noise and randomisation."""

    def __init__(self, run, seed=0):
        policy = load_policy(run)
        task = policy.config.task
        task = replace(
            task,
            observations=replace(task.observations, noise=0.0),
            randomisation=RandomisationConfig(),
        )
        env = VelocityEnv(task, 1, seed=seed)
        hold = round(task.commands.resample_after / env.control_dt)
        self.states, self.actions, self.commands, self.targets = [], [], [self._command(env)], []
        observations = env.get_observations()
        for step in range(1, env.max_episode_length + 1):
            self.states.append((env.engine.qpos[0].copy(), env.engine.qvel[0].copy()))
            action = policy(observations["policy"])
            observations, _, dones, _ = env.step(action)
            self.actions.append(action[0].clamp(-task.actions.clip, task.actions.clip).numpy())
            if dones.any():
                break
            self.targets.append(env.engine._targets[0].copy())
            if step % hold == 0:
                self.commands.append(self._command(env))
        self.actions = np.array(self.actions)
        self.commands = np.array(self.commands)

    @staticmethod
    def _command(env):
        return [*env.commands.values[0, :2].tolist(), env.commands.heading.item()]


def test_a_free_run_takes_the_same_actions_for_a_whole_episode(runs, exports):
    """24 s, 1,200 control steps, three commands; only start and commands are shared."""
    recorded = Recorded(runs("quadruped"))
    assert len(recorded.actions) == 1200
    episode = runner.simulate(
        runner.load_export(exports("quadruped")), 24.0, recorded.commands, *recorded.states[0]
    )
    assert episode.fall is None
    assert episode.stop is None
    assert np.abs(recorded.actions).max() > 0.05
    np.testing.assert_allclose(episode.actions, recorded.actions, atol=1e-5)


def test_a_fall_comes_at_the_same_step(runs, exports):
    recorded = Recorded(runs("laptop"))
    assert 20 < len(recorded.actions) < 1200
    episode = runner.simulate(
        runner.load_export(exports("laptop")), 24.0, recorded.commands, *recorded.states[0]
    )
    assert episode.fall is not None
    assert len(episode.actions) == len(recorded.actions)
    np.testing.assert_allclose(episode.actions, recorded.actions, atol=1e-5)


@pytest.mark.parametrize("preset", ["laptop", "g1", "quadruped"])
def test_along_the_training_states_actions_and_targets_agree(runs, exports, preset):
    recorded = Recorded(runs(preset), seed=1)
    export = runner.load_export(exports(preset))
    controller = runner.Controller(export.contract, export.session, clock=lambda: 0.0)
    hold = round(8.0 / export.contract["control"]["dt"])
    for step, (qpos, qvel) in enumerate(recorded.states):
        targets = controller.step(runner.read(qpos, qvel), recorded.commands[step // hold])
        np.testing.assert_allclose(controller.action, recorded.actions[step], atol=1e-5)
        if step < len(recorded.targets):  # a fall ends with the targets of the next episode
            np.testing.assert_allclose(targets, recorded.targets[step], atol=1e-5)


def test_with_a_zero_warm_start_physics_is_bit_equal(runs, exports):
    recorded = Recorded(runs("laptop"))
    export = runner.load_export(exports("laptop"))
    data = mujoco.MjData(export.model)
    data.qpos[:], data.qvel[:] = recorded.states[0]
    for targets, (qpos, qvel) in zip(recorded.targets, recorded.states[1:], strict=True):
        data.ctrl[:] = targets
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_step(export.model, data, export.contract["control"]["substeps"])
        np.testing.assert_array_equal(data.qpos, qpos)
        np.testing.assert_array_equal(data.qvel, qvel)


def test_the_warm_start_rule_is_followed(exports):
    export = runner.load_export(exports("laptop"))
    assert export.contract["control"]["zero_warm_start"]
    export.model.opt.iterations = 2  # a solver that stops early remembers where it started
    free = copy.deepcopy(export.contract)
    free["control"]["zero_warm_start"] = False

    def actions(contract):
        start = runner.draw_start(contract, 0)
        return runner.simulate(replace(export, contract=contract), 0.4, COMMANDS, *start).actions

    assert np.abs(actions(export.contract) - actions(free)).max() > 1e-4


@pytest.mark.parametrize("preset", ["laptop", "g1", "quadruped"])
def test_clock_and_reference_motion(exports, preset):
    export = runner.load_export(exports(preset))
    controller = runner.Controller(export.contract, export.session)
    task = TASKS[preset]
    pose = torch.from_numpy(make_robot(task.robot).default_pose).float()
    gait = Gait(task.gait, pose, task.simulation.control_dt)
    controller.command = np.array([0.4, -0.2, 0.6])
    command = torch.tensor([[0.4, -0.2, 0.6]])
    for step in range(100):
        controller.steps = step
        beat = gait.at(torch.tensor([step]), command)
        np.testing.assert_allclose(controller.clock(), beat.clock[0], atol=1e-6)
        np.testing.assert_allclose(controller.reference(), beat.reference[0], atol=1e-6)
    assert ("strides" in export.contract["gait"]) == bool(task.gait.stride)


def test_the_clock_keeps_time_for_hours(exports):
    export = runner.load_export(exports("quadruped"))
    controller = runner.Controller(export.contract, export.session)
    controller.steps = 25 * 1_000_000 + 3  # a million cycles of half a second and three steps
    later = controller.clock()
    controller.steps = 3
    np.testing.assert_allclose(later, controller.clock(), atol=1e-7)


def test_policy_file_gives_the_actions_of_the_loaded_policy(runs, exports):
    policy = load_policy(runs("g1"))
    session = runner.open_policy(exports("g1") / "policy.onnx")
    inputs = torch.randn(16, 705, generator=torch.Generator().manual_seed(1))
    found = session.run(None, {"observation": inputs.numpy()})[0]
    np.testing.assert_allclose(found, policy(inputs).numpy(), atol=1e-5)
