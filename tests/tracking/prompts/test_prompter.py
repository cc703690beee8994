"""Prompts by name: read, made into latents, looked for by rollouts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.motions import find_clip, write_clip
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.tracking.presets import PRESETS
from prism_motor.tracking.prompts.latents import reward_prompt, tracking_prompt
from prism_motor.tracking.prompts.prompter import Prompt, Prompter, load_library, motion_files
from prism_motor.tracking.prompts.reward_names import find_reward
from prism_motor.tracking.prompts.reward_search import (
    SearchConfig,
    pose_latents,
    search_reward,
    sum_latents,
    try_latents,
)
from prism_motor.tracking.prompts.states import PromptStates
from prism_motor.tracking.references import action_units, load_references

QUICK = SearchConfig(candidates=3, poses=0, seconds=0.1, settling=0.04)


@pytest.fixture(scope="module")
def task():
    task = PRESETS["tiny"].task
    return replace(task, units=action_units(task.actions, task.robot, load_references(task)))


@pytest.fixture(scope="module")
def prompter(task):
    torch.manual_seed(1)
    policy = TrackingPolicy(PRESETS["tiny"].settings.networks, task.layout)
    references = load_references(task)
    states = PromptStates(references.qpos[::5], references.qvel[::5], "frames of the clips")
    return Prompter(policy, task, references, states, trained=frozenset({"stand"}), search=QUICK)


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("wave", Prompt("motion", "wave")),
        ("stand", Prompt("motion", "stand")),  # a motion's name comes first
        ("reward:stand", Prompt("reward", "stand")),
        ("crouch-0.5", Prompt("reward", "crouch-0.5")),
        ("goal:wave", Prompt("goal", "wave", 0.0)),
        ("goal:wave@1.5", Prompt("goal", "wave", 1.5)),
        ("reward:move-ego--90-0.3", Prompt("reward", "move-ego--90-0.3")),
    ],
)
def test_prompts_are_read(prompter, text, prompt):
    assert prompter.read(text) == prompt
    assert prompter.read(str(prompt)) == prompt


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wvae", "neither a motion nor a reward. Motions: stand, wave. Unknown reward 'wvae'"),
        ("motion:wvae", "Unknown motion 'wvae'; .* Did you mean 'wave'"),
        ("goal:wave@-1", "wave is .* s long; a pose of it is at 0 to .* s, got -1"),
        ("goal:wave@1000", "got 1000"),
        ("goal:wave@x", "Unknown motion 'wave@x'"),
        ("reward:jump", "Unknown reward 'jump'"),
        ("pose:wave", "prompts are motion:NAME, goal:NAME@SECONDS and reward:NAME"),
        ("", "neither a motion"),
    ],
)
def test_what_cannot_be_asked_for_is_said(prompter, text, words):
    with pytest.raises(InputError, match=words):
        prompter.read(text)


# Motions and poses --------------------------------------------------------------------------------


def test_a_motion_has_a_latent_per_step_and_the_frame_it_aims_at(prompter):
    made = prompter.make(prompter.read("wave"))
    references = prompter.references
    index = references.names.index("wave")
    seen = references.observations(prompter.policy.layout, index)
    assert torch.equal(made.latents, tracking_prompt(prompter.policy, seen, window=8))
    assert "the next 8 frames of wave" in made.source
    first = references.starts[index]
    assert made.start == first
    assert made.frames[0] == first + 1
    assert made.frames[-1] == references.starts[index + 1] - 1
    assert "never saw" in made.source
    assert "trained on" in prompter.make(prompter.read("stand")).source


def test_a_pose_is_one_latent_that_does_not_know_of_velocities(prompter):
    made = prompter.make(Prompt("goal", "wave", 1.0))
    references = prompter.references
    frame = int(references.starts[references.names.index("wave")]) + 50
    assert made.frames.tolist() == [frame]
    assert len(made) == 1
    still = PromptStates(references.qpos[[frame]], np.zeros((1, 35)), "")
    expected = prompter.policy.encode(still.observations(prompter.policy.layout))
    assert torch.allclose(made.latents, expected, atol=1e-4)
    last = prompter.make(Prompt("goal", "wave", prompter.seconds("wave")))
    assert last.frames.tolist() == [references.starts[references.names.index("wave") + 1] - 1]


def test_the_robot_begins_where_it_is_calm_and_upright(prompter):
    references = prompter.references
    assert np.abs(references.qvel[prompter.home]).max() < 0.05
    assert references.qpos[prompter.home, 2] > 0.7


# Rewards ------------------------------------------------------------------------------------------


def test_the_first_candidate_is_the_prompt_of_all_states(prompter):
    states, layout = prompter.states, prompter.policy.layout
    reward = find_reward("stand")
    rewards = reward(states.qpos, states.qvel)
    latents = sum_latents(prompter.policy, states, reward, QUICK)
    expected = reward_prompt(
        prompter.policy, states.observations(layout), torch.from_numpy(rewards)
    )
    assert torch.allclose(latents[0], expected, atol=1e-5)
    assert len({tuple(row.tolist()) for row in latents}) == 3
    again = sum_latents(prompter.policy, states, reward, QUICK)
    assert torch.equal(latents, again)
    other = sum_latents(prompter.policy, states, reward, replace(QUICK, seed=1))
    assert not torch.equal(latents[1], other[1])


def test_known_poses_are_tried_that_are_worth_most(prompter):
    references, layout = prompter.references, prompter.policy.layout
    poses = references.qpos[[0, 0, 0]].copy()
    poses[:, 2] = 0.1, 0.75, 0.3
    config = SearchConfig(poses=1, temperature=1000.0)
    (latent,) = pose_latents(prompter.policy, poses, find_reward("stand"), config)
    still = PromptStates(poses, np.zeros((3, 35)), "")
    expected = prompter.policy.encode(still.observations(layout))
    assert torch.allclose(latent, expected[1], atol=1e-5)
    # Nothing at rest moves.
    assert len(pose_latents(prompter.policy, poses, find_reward("rotate-z-3-0.5"), config)) == 0
    assert len(prompter._known()) == references.lengths[references.names.index("stand")]


def test_the_best_of_several_is_kept(prompter, task):
    found = search_reward(
        prompter.policy, task, prompter.references, prompter.states, find_reward("stand"),
        start=prompter.home, config=QUICK,
    )  # fmt: skip
    assert len(found.scores) == 3
    assert found.score == max(found.scores)
    alone = try_latents(
        prompter.policy, task, prompter.references, find_reward("stand"), found.latent[None],
        start=prompter.home, config=QUICK,
    )  # fmt: skip
    assert alone[0] == pytest.approx(found.score, rel=1e-3)
    made = prompter.make(Prompt("reward", "stand"))
    assert torch.equal(made.latents[0], found.latent)
    assert made.frames is None
    assert "best of 3 latents, 0.1 s after 0.04 s" in made.source
    assert prompter.make(Prompt("reward", "stand")).latents is not None  # not looked for again


def test_a_reward_that_no_state_has_is_said(prompter):
    with pytest.raises(InputError, match=r"rotate-x-20-0\.8: none of the frames of the clips has"):
        prompter.make(Prompt("reward", "rotate-x-20-0.8"))


# Libraries ----------------------------------------------------------------------------------------


def test_a_library_has_the_runs_clips_first_and_all_shipped_ones(task):
    references, trained, note = load_library(task)
    assert references.names[:2] == ("stand", "wave")
    assert trained == {"stand", "wave"}
    assert "squat" in references.names
    assert not note


def test_clips_that_have_gone_are_said_and_the_shipped_ones_stay(task, tmp_path):
    references, trained, note = load_library(replace(task, clips=(str(tmp_path / "gone.npz"),)))
    assert "are not here" in note
    assert not trained
    assert "wave" in references.names


def test_files_can_be_asked_for(task, tmp_path):
    file = write_clip(replace(find_clip("bow"), name="mine"), tmp_path)
    for text, expected in (
        (str(file), "mine"), (f"motion:{file}", "motion:mine"), (f"goal:{file}@1", "goal:mine@1"),
    ):  # fmt: skip
        files, named = motion_files([text, "wave"])
        assert files == [str(file)]
        assert named == [expected, "wave"]
    references, trained, _ = load_library(task, files)
    assert "mine" in references.names
    assert "mine" not in trained
    assert motion_files(["wave", "reward:stand"]) == ([], ["wave", "reward:stand"])
