"""The normaliser has the formulas of BatchNorm, and moves only when told to."""

import torch
from torch import nn

from prism_motor.tracking.learning.normaliser import ObservationNormaliser
from prism_motor.tracking.observations import Layout

LAYOUT = Layout(compact=True)


def test_statistics_and_output_are_those_of_batch_norm():
    normaliser = ObservationNormaliser(LAYOUT)
    reference = nn.BatchNorm1d(LAYOUT.size, affine=False, momentum=0.01)
    for i in range(5):
        batch = (1 + i) * torch.randn(32, LAYOUT.size) + i
        normaliser.observe(batch)
        reference.train()(batch)
    x = torch.randn(8, LAYOUT.size)
    assert torch.allclose(normaliser.mean, reference.running_mean, atol=1e-6)
    assert torch.allclose(normaliser.variance, reference.running_var, atol=1e-5)
    assert torch.allclose(normaliser(x), reference.eval()(x), atol=1e-5)
    assert normaliser.batches.tolist() == [5, 5, 5, 5]


def test_looking_moves_nothing_and_parts_are_parts_of_the_whole():
    normaliser = ObservationNormaliser(LAYOUT)
    normaliser.observe(3 + torch.randn(32, LAYOUT.size))
    before = {name: value.clone() for name, value in normaliser.state_dict().items()}
    x = torch.randn(8, LAYOUT.size)
    whole = normaliser(x)
    streams = ("state", "privileged")
    part = normaliser(LAYOUT.select(x, streams), streams)
    assert torch.equal(part, LAYOUT.select(whole, streams))
    for name, value in normaliser.state_dict().items():
        assert torch.equal(value, before[name])


def test_buffers_are_what_the_paper_counts():
    assert sum(b.numel() for b in ObservationNormaliser(Layout()).buffers()) == 1_860
