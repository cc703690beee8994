"""Latents: the sphere, mixing, relabelling, the ring, and what rollouts act under."""

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.config import LatentConfig
from prism_motor.tracking.learning.latents import (
    LatentRing,
    RolloutLatents,
    following_latents,
    mix_latents,
    project,
    random_latents,
    relabel,
    window_latents,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_all_latents_have_the_length_of_the_sphere():
    radius = pytest.approx(4.0, rel=1e-5)
    codes = torch.randn(16, 16)
    for latents in (
        project(codes),
        random_latents(16, 16, generator()),
        window_latents(codes, 8),
        following_latents(codes, 8),
    ):
        assert latents.norm(dim=-1).tolist() == [radius] * 16


def test_windows_have_the_direction_of_their_mean():
    codes = torch.randn(16, 4)
    latents = window_latents(codes, 8)
    for window in range(2):
        mean = codes[8 * window : 8 * window + 8].mean(0)
        for row in latents[8 * window : 8 * window + 8]:
            assert torch.allclose(row, 2 * mean / mean.norm(), atol=1e-5)


def test_following_averages_what_comes_and_shrinks_at_the_end():
    codes = torch.randn(3, 20, 4)
    latents = following_latents(codes, 8)
    for t in range(20):
        mean = codes[:, t : t + 8].mean(1)
        assert torch.allclose(latents[:, t], project(mean), atol=1e-5)
    assert torch.allclose(following_latents(codes, 1), project(codes), atol=1e-5)


def test_shares_of_the_mixture():
    count = 20_000
    goals, experts = torch.full((count, 4), 1.0), torch.full((count, 4), 2.0)
    mixed, of_clips = mix_latents(LatentConfig(), goals, experts, generator())
    assert torch.equal((mixed == 2).all(1), of_clips)
    kinds = [(mixed == value).all(1).float().mean().item() for value in (1.0, 2.0)]
    assert kinds == pytest.approx([0.2, 0.6], abs=0.01)
    new, renewed = relabel(LatentConfig(), torch.ones(count, 4), torch.zeros(count, 4), generator())
    assert new[:, 0].mean().item() == pytest.approx(0.8, abs=0.01)
    assert torch.equal(new[:, 0] == 1, renewed)
    with pytest.raises(InputError, match="more than 1 together"):
        LatentConfig(goal=0.5, expert=0.6)


def test_goals_and_experts_are_permuted():
    config = LatentConfig(goal=1.0, expert=0.0)
    goals = torch.arange(64.0).unsqueeze(1).expand(-1, 4)
    mixed, of_clips = mix_latents(config, goals, goals, generator())
    assert not of_clips.any()
    assert not torch.equal(mixed, goals)
    assert torch.equal(mixed.sort(dim=0).values, goals)


def test_the_ring_keeps_the_latest_and_resumes():
    ring = LatentRing(10, 2)
    assert ring.draw(3, generator()).norm(dim=1).tolist() == pytest.approx([2**0.5] * 3)
    for i in range(4):
        ring.push(torch.full((4, 2), float(i)))
    drawn = set(ring.draw(500, generator())[:, 0].tolist())
    assert drawn == {1.0, 2.0, 3.0}
    assert len(ring) == 10
    other = LatentRing(10, 2)
    other.restore(*ring.state())
    for one in (ring, other):
        one.push(torch.full((3, 2), 9.0))
    assert torch.equal(ring.draw(50, generator(2)), other.draw(50, generator(2)))
    ring.push(torch.arange(30.0).view(15, 2))  # more than fit at once
    assert ring.draw(200, generator()).min() >= 10


def test_rollouts_switch_with_the_age_of_the_episode():
    config = LatentConfig(switch_every=5, follow=0.0)
    rollouts, ring, draws = RolloutLatents(config, 3, 4), LatentRing(8, 4), generator()
    clocks = torch.tensor([0, 2, 4])
    seen = [rollouts.step(clocks + step, ring, lambda _: None, draws) for step in range(8)]
    for env, start in enumerate(clocks.tolist()):
        for step in range(1, 8):
            same = torch.equal(seen[step][env], seen[step - 1][env])
            assert same == ((start + step) % 5 != 0)


def test_followers_take_one_latent_per_step_and_are_drawn_anew():
    config = LatentConfig(switch_every=1000, follow=0.5, follow_steps=4)
    envs = 400
    rollouts, ring, draws = RolloutLatents(config, envs, 2), LatentRing(8, 2), generator()
    asked = []

    def stretches(count):
        asked.append(count)
        return torch.arange(4.0).view(1, 4, 1).expand(count, 4, 2) + 100 * len(asked)

    clocks = torch.arange(envs) % 7 + 1
    followers = []
    for step in range(8):
        latents = rollouts.step(clocks, ring, stretches, draws)
        expected = 100 * (1 + step // 4) + step % 4
        followers.append((latents == expected).all(1))
    # Drawn with replacement: 1 - exp(-0.5) of the environments.
    assert followers[0].float().mean().item() == pytest.approx(0.393, abs=0.05)
    assert torch.equal(followers[0], followers[3])
    assert not torch.equal(followers[3], followers[4])
    assert len(asked) == 2


def test_rollouts_resume_exactly():
    config = LatentConfig(switch_every=3, follow_steps=5)
    ring = LatentRing(8, 2)
    clocks = torch.arange(6)

    def play(rollouts, draws, steps):
        def stretches(count):
            return torch.rand(count, 5, 2, generator=draws)

        return [rollouts.step(clocks + s, ring, stretches, draws) for s in steps]

    first, draws = RolloutLatents(config, 6, 2), generator()
    play(first, draws, range(7))
    saved, at = first.state(), draws.get_state()
    after = play(first, draws, range(7, 14))
    second, again = RolloutLatents(config, 6, 2), generator(9)
    second.restore(*saved)
    again.set_state(at)
    for one, other in zip(after, play(second, again, range(7, 14)), strict=True):
        assert torch.equal(one, other)
