"""Our environment against LeRobot's wrapper, step for step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor.manipulation.tasks import find_task, list_tasks, make_environment

pytestmark = pytest.mark.slow

STATE, SEED, SIZE = 5, 3, 64
TURNED = 12
"""The step before which the knob of the stove is turned, so that the task is solved."""


def actions():
    """Random motion, then down onto the table."""
    random = np.clip(np.random.default_rng(0).normal(0.0, 0.7, (8, 7)), -1.0, 1.0)
    return np.vstack([random, np.tile([0.2, 0.1, -1.0, 0.0, 0.0, 0.1, 1.0], (8, 1))])


def turn_knob(sim):
    sim.data.qpos[sim.model.get_joint_qpos_addr("flat_stove_1_button")] = 1.0


@pytest.fixture(scope="module")
def lerobot(libero):
    """States, images, simulator positions and successes of LeRobot's wrapper and processor.

    Images are those of both cameras, as the processor gives them to policies.
    """
    pytest.importorskip("lerobot", reason="lerobot is not installed")
    import torch
    from lerobot.processor.env_processor import LiberoProcessorStep

    from prism_motor.manipulation.suites.libero.package import import_libero

    module = import_libero("lerobot.envs.libero")
    suite = import_libero("libero.libero.benchmark").get_benchmark("libero_goal")()
    task = find_task("libero_goal", "turn_on_the_stove")
    wrapper = module.LiberoEnv(
        suite,
        task.index,
        task.suite,
        obs_type="pixels_agent_pos",
        observation_width=SIZE,
        observation_height=SIZE,
        episode_index=STATE,
    )
    step = LiberoProcessorStep()

    def process(seen):
        arm = {
            part: {key: torch.from_numpy(np.array(value))[None] for key, value in values.items()}
            for part, values in seen["robot_state"].items()
        }
        pixels = {
            f"observation.images.{name}": torch.from_numpy(image.copy()).permute(2, 0, 1)[None]
            for name, image in seen["pixels"].items()
        }
        out = step.observation({"observation.robot_state": arm, **pixels})
        pictures = [out[name][0].permute(1, 2, 0).numpy() for name in pixels]
        return out["observation.state"][0].numpy(), pictures

    seen, _ = wrapper.reset(seed=SEED)
    observed, positions, successes = [process(seen)], [], []
    for index, action in enumerate(actions()):
        if index == TURNED:
            turn_knob(wrapper._env.sim)
        # The wrapper resets itself after success, before its simulation could be read.
        reset, wrapper.reset = wrapper.reset, lambda: None
        seen, _, _, _, info = wrapper.step(action)
        wrapper.reset = reset
        observed.append(process(seen))
        positions.append(wrapper._env.sim.data._data.qpos.copy())
        successes.append(info["is_success"])
    wrapper.close()
    return observed, positions, successes, module.TASK_SUITE_MAX_STEPS


def test_same_states_and_successes_for_the_same_actions(lerobot):
    observed, positions, successes, _ = lerobot
    task = find_task("libero_goal", "turn_on_the_stove")
    environment = make_environment(task, image_size=SIZE)
    seen = environment.reset(seed=SEED, initial_state=STATE)
    states, images, ours = [seen.state], [seen.images["agentview"]], []
    for index, action in enumerate(actions()):
        if index == TURNED:
            turn_knob(environment.problem.sim)
        step = environment.step(action)
        states.append(step.observation.state)
        images.append(step.observation.images["agentview"])
        assert_array_equal(environment.problem.sim.data._data.qpos, positions[index])
        ours.append(step.success)
    assert ours == successes
    assert ours == [False] * TURNED + [True] * (len(ours) - TURNED)
    assert_allclose(states, [state for state, _ in observed], atol=1e-6)
    # Drawn without multisampling, shadows and reflections: alike, not equal.
    for image, (_, (theirs, _)) in zip(images, observed, strict=True):
        difference = np.abs(image.astype(int) - theirs.astype(int)).mean()
        mirrored = np.abs(image[:, ::-1].astype(int) - theirs.astype(int)).mean()
        assert difference < 12 < mirrored
    environment.close()


def test_the_stock_renderer_draws_the_same_pixels(lerobot):
    observed, *_ = lerobot
    task = find_task("libero_goal", "turn_on_the_stove")
    environment = make_environment(task, image_size=SIZE, renderer="stock")
    smaller = make_environment(task, image_size=SIZE // 2, renderer="stock", drawn_size=SIZE)
    scenes = (environment, smaller)
    seen = [scene.reset(seed=SEED, initial_state=STATE) for scene in scenes]
    for index, action in enumerate([*actions()[:4], None]):
        for image, theirs in zip(seen[0].images.values(), observed[index][1], strict=True):
            assert_array_equal(image, theirs)
        # What is drawn at one size and seen at another is the mean of the pixels.
        for image, half in zip(seen[0].images.values(), seen[1].images.values(), strict=True):
            blocks = image.reshape(SIZE // 2, 2, SIZE // 2, 2, 3).mean((1, 3))
            assert_allclose(half, blocks, atol=1.0)
        if action is not None:
            seen = [scene.step(action).observation for scene in scenes]
    for scene in scenes:
        scene.close()


def test_horizons_are_the_same(lerobot):
    for suite in ("libero_spatial", "libero_object", "libero_goal", "libero_10"):
        assert {task.horizon for task in list_tasks(suite)} == {lerobot[3][suite]}
