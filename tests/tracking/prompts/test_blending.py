"""From latent to latent: on the sphere, at the right angle, at the right time."""

import math

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.learning.latents import project
from prism_motor.tracking.prompts.blending import Fade, Schedule, blend, slerp


def latents(*rows):
    return project(torch.tensor(rows, dtype=torch.float64))


def angle(a, b):
    return math.acos(min(1.0, float(a @ b) / len(a)))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_way_is_a_great_circle_at_constant_speed(share):
    torch.manual_seed(1)
    a, b = project(torch.randn(2, 16, dtype=torch.float64))
    found = slerp(a, b, share)
    assert found.norm() == pytest.approx(4.0)
    assert angle(a, found) == pytest.approx(share * angle(a, b), abs=1e-6)
    assert angle(found, b) == pytest.approx((1 - share) * angle(a, b), abs=1e-6)


def test_equal_and_opposite_latents_have_no_great_circle():
    a, b = latents([1.0, 0, 0, 0], [-1.0, 0, 0, 0])
    assert torch.allclose(slerp(a, a, 0.3), a)
    assert torch.allclose(slerp(a, b, 0.2), a)
    assert torch.allclose(slerp(a, b, 0.8), b)


def test_many_pairs_at_once():
    torch.manual_seed(2)
    a, b = project(torch.randn(2, 5, 8))
    shares = torch.linspace(0, 1, 5)
    together = slerp(a, b, shares)
    for i in range(5):
        assert torch.allclose(together[i], slerp(a[i], b[i], float(shares[i])), atol=1e-5)


def test_blends_follow_their_weights():
    a, b, c = latents([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])
    assert torch.allclose(blend(torch.stack([a, b]), (3, 1)), slerp(a, b, 0.25))
    assert torch.allclose(blend(torch.stack([a, b, c]), (1, 1, 1)), project(a + b + c))
    assert torch.allclose(blend(torch.stack([a, b, c]), (0, 0, 2)), c)
    for weights in ((1,), (1, -1, 1), (0, 0, 0), (1, float("nan"), 1)):
        with pytest.raises(InputError, match="as many weights"):
            blend(torch.stack([a, b, c]), weights)
    with pytest.raises(InputError, match="cancel"):
        blend(torch.stack([a, -a, b]), (1, 1, 0))


def test_a_fade_takes_its_time():
    a, b = latents([1.0, 0, 0], [0, 1.0, 0])
    fade = Fade(start=2.0, seconds=1.0)
    assert torch.allclose(fade(a, b, 1.0), a)
    assert angle(a, fade(a, b, 2.5)) == pytest.approx(math.pi / 4)
    assert fade(a, b, 3.0) is b
    assert Fade(2.0, 0.0)(a, b, 2.0) is b
    shares = [fade.share(2 + i / 20) for i in range(21)]
    assert shares == sorted(shares)


def test_a_schedule_holds_and_switches():
    a, b, c = rows = latents([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])
    schedule = Schedule(rows, (2.0, 3.0, 1.0), fade=1.0)
    assert torch.equal(schedule(0.0), a)
    assert torch.equal(schedule(1.99), a)
    assert torch.allclose(schedule(2.0), a)
    assert angle(a, schedule(2.5)) == pytest.approx(math.pi / 4)
    assert torch.equal(schedule(3.5), b)
    assert torch.equal(schedule(6.5), c)
    assert torch.equal(schedule(1000.0), c)
    for seconds, fade in (((1.0, 1.0), 0.0), ((1.0, 0.0, 1.0), 0.0), ((1.0, 1.0, 1.0), -1.0)):
        with pytest.raises(InputError, match="as many times"):
            Schedule(rows, seconds, fade)
