"""Your own reward terms, without and with memory, in a task that uses them."""

from dataclasses import replace

import torch

from prism_motor.locomotion import TASKS, RewardTerm, register_task, term


@term
def calm_base(step, *, sharpness=2.0):
    """Slow rolling and pitching; the keyword-only argument is a parameter."""
    return torch.exp(-sharpness * step.state.angular_velocity[:, :2].square().sum(-1))


@term
class NewHeight(RewardTerm):
    """Every centimetre that the base rises above its highest point of the episode."""

    memory = ("highest",)  # zero when an episode begins, part of checkpoints

    def __init__(self, robot, num_envs, *, limit=0.05):
        super().__init__(robot, num_envs)
        self.limit = limit
        self.highest = torch.zeros(num_envs)

    def __call__(self, step):
        risen = step.state.base_position[:, 2] - step.config.base_height
        gained = (risen - self.highest).clamp(min=0)
        self.highest = torch.maximum(self.highest, risen)
        return 100 * gained.clamp(max=self.limit)


laptop = TASKS["laptop"]
weights = {**laptop.rewards.weights, "calm_base": 0.5, "new_height": 0.1}
parameters = {**laptop.rewards.parameters, "calm_base": {"sharpness": 4.0}}
rewards = replace(laptop.rewards, weights=weights, parameters=parameters)
register_task("laptop-calm", replace(laptop, rewards=rewards))
