import numpy as np
import pytest

from prism_motor.manipulation.tasks import find_task, list_tasks, make_environment, make_expert

pytest.importorskip("metaworld", reason="Meta-World is not installed")


@pytest.fixture(scope="module")
def environment():
    made = make_environment(find_task("metaworld", "push-v3"), image_size=48)
    yield made
    made.close()


def test_fifty_tasks_by_number_and_name():
    tasks = list_tasks("metaworld")
    assert [task.index for task in tasks] == list(range(50))
    assert find_task("metaworld", 38) == find_task("metaworld", "push-v3")
    with pytest.raises(ValueError, match="Did you mean 'push-v3'"):
        find_task("metaworld", "push-v2")
    with pytest.raises(ValueError, match="tasks 0 to 49, got 50"):
        find_task("metaworld", "50")
    with pytest.raises(ValueError, match="Unknown suite 'libro'"):
        list_tasks("libro")


def test_the_same_seed_gives_the_same_episode_whatever_came_before(environment):
    def episode():
        actions = np.linspace(-1, 1, 20).reshape(5, 4)
        rows = [environment.reset(seed=7, images=False)]
        rows += [environment.step(action, images=False).observation for action in actions]
        return np.stack([np.concatenate([row.state, row.objects]) for row in rows])

    first = episode()
    environment.reset(seed=8, images=False)
    for _ in range(30):
        environment.step(np.array([1.0, 1.0, -1.0, 1.0]), images=False)
    np.testing.assert_array_equal(episode(), first)


def test_initial_states_are_fixed_distinct_and_no_random_reset(environment):
    fixed = [environment.reset(initial_state=n, images=False).objects for n in range(6)]
    again = environment.reset(initial_state=3, images=False).objects
    np.testing.assert_array_equal(again, fixed[3])
    random = [environment.reset(seed=n, images=False).objects for n in range(6)]
    places = np.stack([*fixed, *random])
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert (distances + np.eye(len(places)) > 1e-4).all()
    with pytest.raises(ValueError, match="initial states 0 to 49, got 50"):
        environment.reset(initial_state=50)


def test_state_names_describe_what_moves(environment):
    start = environment.reset(seed=1, images=False)
    for _ in range(10):
        end = environment.step(np.array([1.0, 0, 0, -1]), images=False).observation
    moved = dict(zip(environment.state_names, end.state - start.state, strict=True))
    assert moved["hand_x"] > 0.05
    assert abs(moved["hand_y"]) < 0.02
    joints = [abs(change) for name, change in moved.items() if name.startswith("right_j")]
    assert len(joints) == 7
    assert max(joints) > 0.02
    assert len(end.objects) == len(environment.object_names)


def test_images_only_when_asked_for(environment):
    shapes = {c: i.shape for c, i in environment.reset(initial_state=0).images.items()}
    assert shapes == {"corner2": (48, 48, 3), "gripperPOV": (48, 48, 3)}
    step = environment.step(np.zeros(4), images=False)
    assert step.observation.images == {}
    image = environment.step(np.zeros(4)).observation.images["corner2"]
    assert image.std() > 20  # something is in the picture
    assert environment.frame(96).shape == (96, 96, 3)
    np.testing.assert_array_equal(
        environment.step(np.zeros(4)).observation.images["corner2"].shape, (48, 48, 3)
    )


def test_the_arm_stands_above_the_table_in_the_picture(environment):
    # Seen from the corner, the red arm is in the upper half and the table in the lower.
    image = environment.reset(initial_state=0).images["corner2"].astype(int)
    red = (image[..., 0] > 90) & (image[..., 1] < 60) & (image[..., 2] < 60)
    rows = red.sum(1)
    assert rows[:24].sum() > rows[24:].sum()


def test_physics_in_the_air_and_while_pressing(environment):
    environment.reset(seed=2, images=False)
    physics = environment.physics()
    np.testing.assert_allclose(physics.position, environment.reset(seed=2).state[:3], atol=1e-6)
    assert physics.largest_force == pytest.approx(0, abs=1e-6)
    assert physics.jacobian.shape == (6, 0)
    assert np.linalg.norm(physics.quaternion) == pytest.approx(1)
    environment.reset(seed=2, images=False)
    before = environment.physics().position
    environment.step(np.array([0, 1.0, 0, 0]), images=False)
    environment.step(np.array([0, 1.0, 0, 0]), images=False)
    middle = environment.physics()
    environment.step(np.array([0, 1.0, 0, 0]), images=False)
    after = environment.physics()
    # Velocity against the difference of positions.
    mean = (middle.velocity[:3] + after.velocity[:3]) / 2
    moved = (after.position - middle.position) / environment.control_seconds
    np.testing.assert_allclose(mean, moved, atol=0.1)
    assert after.position[1] > before[1]


def test_the_horizon_may_be_passed(environment):
    environment.reset(seed=1, images=False)
    steps = [environment.step(np.zeros(4), images=False) for _ in range(502)]
    assert [step.timeout for step in steps[498:]] == [False, True, True, True]


@pytest.mark.parametrize("name", ["reach-v3", "push-v3", "drawer-open-v3"])
def test_the_expert_solves_its_task(name):
    environment = make_environment(find_task("metaworld", name), cameras=())
    try:
        for seed in range(2):
            environment.reset(seed=seed, images=False)
            expert = make_expert(environment)
            expert.reset()
            for _ in range(environment.task.horizon):
                action = expert.act()
                assert np.abs(action).max() <= 1
                step = environment.step(action, images=False)
                if step.success:
                    break
            assert step.success
    finally:
        environment.close()


def test_an_unknown_camera_is_named():
    with pytest.raises(ValueError, match="Unknown camera of Meta-World 'agentview'"):
        make_environment(find_task("metaworld", "reach-v3"), cameras=("agentview",))
