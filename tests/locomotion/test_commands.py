import math

import pytest
import torch

from prism_motor.locomotion.commands import Commands, HeldCommands, wrap
from prism_motor.locomotion.task import CommandConfig


def make_commands(count=20_000):
    commands = Commands(CommandConfig(), count, torch.Generator().manual_seed(0))
    commands.resample(torch.arange(count))
    return commands


def test_command_ranges_and_deadband():
    values = make_commands().values
    forward, sideways = values[:, 0], values[:, 1]
    assert forward.min() >= -0.3
    assert forward.max() <= 0.6
    assert sideways.abs().max() <= 0.3
    zero = (values[:, :2] == 0).all(-1)
    assert zero.float().mean().item() == pytest.approx(0.233, abs=0.01)
    assert values[~zero, :2].norm(dim=-1).min() > 0.2


def test_heading_becomes_a_clipped_yaw_rate():
    commands = make_commands(3)
    commands.heading[:] = torch.tensor([1.0, 3.0, -3.0])
    commands.follow_heading(torch.tensor([0.5, -1.0, 3.0]))
    errors = [0.5, 4.0 - 2 * math.pi, -6.0 + 2 * math.pi]
    expected = torch.tensor([max(-1.0, min(1.0, 0.5 * e)) for e in errors])
    torch.testing.assert_close(commands.values[:, 2], expected)


def test_a_drawn_yaw_rate_stays_until_the_next_draw():
    config = CommandConfig(yaw="rate")
    commands = Commands(config, 20_000, torch.Generator().manual_seed(0))
    commands.resample(torch.arange(20_000))
    rates = commands.values[:, 2].clone()
    assert -0.3 <= rates.min() < -0.29
    assert 0.29 < rates.max() <= 0.3
    assert rates.mean().item() == pytest.approx(0.0, abs=0.01)
    commands.follow_heading(torch.full((20_000,), 2.0))
    assert torch.equal(commands.values[:, 2], rates)
    assert not commands.heading.any()
    followed = make_commands()
    assert torch.equal(commands.values[:, :2], followed.values[:, :2])  # the same draws


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"yaw": "rates"}, "heading, rate"), ({"yaw_rate": (0.3, -0.3)}, "yaw_rate must be")],
)
def test_bad_yaw_commands(changes, words):
    with pytest.raises(ValueError, match=words):
        CommandConfig(**changes)


def test_resampling_some_keeps_the_others():
    commands = make_commands(10)
    before = commands.values.clone()
    commands.resample(torch.tensor([2, 5]))
    changed = (commands.values != before).any(-1).nonzero().squeeze(-1).tolist()
    assert set(changed) <= {2, 5}
    assert changed


def test_a_held_command_stays_and_gives_way_to_the_tasks_own():
    commands = HeldCommands(make_commands(3), (0.4, -0.1, 0.3))
    commands.resample(torch.arange(3))
    commands.values = torch.zeros(3, 3)  # as loading a saved state does
    commands.follow_heading(torch.zeros(3))
    torch.testing.assert_close(commands.values, torch.tensor([[0.4, -0.1, 0.3]] * 3))
    commands.hold(None)
    commands.resample(torch.arange(3))
    commands.follow_heading(torch.zeros(3))
    torch.testing.assert_close(commands.values[:, 2], (0.5 * commands.heading).clamp(-1, 1))
    assert not torch.equal(commands.values[0], commands.values[1])


def test_wrap():
    angles = torch.tensor([0.0, math.pi, -math.pi, 3 * math.pi, -0.5, 2 * math.pi + 0.1])
    expected = torch.tensor([0.0, math.pi, math.pi, math.pi, -0.5, 0.1])
    torch.testing.assert_close(wrap(angles), expected, atol=1e-5, rtol=0)
