"""The policy behind ``point_seeker``."""

import torch
from lerobot.policies.pretrained import PreTrainedPolicy
from torch import nn

from tests.pilots.configuration_seeker import SeekerConfig


class SeekerPolicy(PreTrainedPolicy):
    config_class = SeekerConfig
    name = "point_seeker"

    def __init__(self, config, **kwargs):
        super().__init__(config)
        self.gain = nn.Parameter(torch.ones(1))

    def get_optim_params(self):
        return self.parameters()

    def reset(self):
        pass

    def forward(self, batch):
        raise NotImplementedError

    def predict_action_chunk(self, batch, **kwargs):
        return self.select_action(batch)[:, None]

    def select_action(self, batch, **kwargs):
        red = (batch["observation.images.top"][:, 0] > 0.5).float()
        grid = torch.linspace(-1, 1, red.shape[-1])
        total = red.sum((1, 2)).clamp(min=1)
        x = (red.sum(1) * grid).sum(-1) / total
        y = (red.sum(2) * grid).sum(-1) / total
        seen = (x <= self.config.reach).float()
        return self.gain * torch.stack([x, y], dim=-1) * seen[:, None]
