"""``prism_diffusion`` against LeRobot's Diffusion Policy."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import torch
from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy
from torch import nn

from prism_motor.integrations.lerobot import PrismDiffusionPolicy
from prism_motor.nn import count_parameters

STATE = "observation.state"


def build(policy, config):
    torch.manual_seed(11)
    return policy(config)


def loss_of(policy, batch):
    torch.manual_seed(5)
    return policy.forward(batch)[0]


def actions_of(policy, batch):
    """Twelve actions in a row, which takes two inferences."""
    policy.eval()
    policy.reset()
    torch.manual_seed(6)
    frames = {k: v[:, -1] for k, v in batch.items() if k.startswith("observation")}
    return torch.stack([policy.select_action(dict(frames)) for _ in range(12)])


@pytest.mark.parametrize("kind", ["images", "objects"])
def test_linear_is_lerobot_weight_for_weight(kind, make_config, lerobot_config, make_batch):
    ours = build(PrismDiffusionPolicy, make_config("linear", kind))
    theirs = build(DiffusionPolicy, lerobot_config(kind))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], tensor), name
    batch = make_batch(kind)
    assert torch.equal(loss_of(ours, batch), loss_of(theirs, batch))
    assert torch.equal(actions_of(ours, batch), actions_of(theirs, batch))


@pytest.mark.parametrize("conditioner", ["prism", "mlp"])
@pytest.mark.parametrize("kind", ["images", "objects"])
def test_everything_but_the_state_is_untouched(
    conditioner, kind, make_config, lerobot_config, make_batch
):
    ours = build(PrismDiffusionPolicy, make_config(conditioner, kind))
    theirs = build(DiffusionPolicy, lerobot_config(kind))
    # The same seed gives the same encoder and U-Net, and nothing else was added.
    extra = set(ours.state_dict()) - set(theirs.state_dict())
    assert extra
    assert all(name.startswith("diffusion.conditioner.") for name in extra)
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], tensor), name

    # In the global condition only the places of the state differ.
    batch = make_batch(kind)
    if kind == "images":
        cameras = [batch[name] for name in sorted(ours.config.image_features)]
        batch["observation.images"] = torch.stack(cameras, dim=-4)
    ours.eval(), theirs.eval()
    condition = ours.diffusion._prepare_global_conditioning(batch).unflatten(1, (2, -1))
    reference = theirs.diffusion._prepare_global_conditioning(batch).unflatten(1, (2, -1))
    assert condition.shape == reference.shape
    assert torch.equal(condition[..., 8:], reference[..., 8:])
    expected = ours.diffusion.conditioner(batch[STATE].flatten(1)).unflatten(1, (2, -1))
    torch.testing.assert_close(condition[..., :8], expected)
    assert not torch.allclose(condition[..., :8], reference[..., :8])

    # With a conditioner that changes nothing, losses and actions are LeRobot's bit for bit.
    ours.diffusion.conditioner = nn.Identity()
    batch = make_batch(kind)
    ours.train(), theirs.train()
    assert torch.equal(loss_of(ours, batch), loss_of(theirs, batch))
    assert torch.equal(actions_of(ours, batch), actions_of(theirs, batch))


def test_the_batch_is_left_as_it_was(make_config, make_batch):
    batch = make_batch("objects")
    before = batch[STATE].clone()
    loss_of(build(PrismDiffusionPolicy, make_config("prism", "objects")), batch)
    assert torch.equal(batch[STATE], before)


def test_paper_size_conditioner_in_the_policy(make_config):
    policy = build(PrismDiffusionPolicy, make_config())
    assert count_parameters(policy.diffusion.conditioner) == 79_408
    linear = build(PrismDiffusionPolicy, make_config("linear"))
    assert count_parameters(policy) - count_parameters(linear) == 79_408


def test_optimiser_is_adamw_and_spares_the_gates(make_config):
    config = make_config()
    policy = build(PrismDiffusionPolicy, config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    assert type(optimizer) is torch.optim.AdamW
    decay = {
        id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    assert {id(p) for p in policy.parameters()} == set(decay)
    assert decay[id(policy.diffusion.conditioner.interaction.gate)] == 0
    # LeRobot's own parameters are decayed as ever, biases included.
    for name, parameter in policy.named_parameters():
        if "conditioner" not in name:
            assert decay[id(parameter)] == 1e-6, name
    assert decay[id(policy.diffusion.conditioner.interaction.weight)] == 1e-6


def test_linear_gives_the_optimiser_one_group(make_config):
    (group,) = build(PrismDiffusionPolicy, make_config("linear")).get_optim_params()
    assert set(group) == {"params"}


@pytest.mark.parametrize("conditioner", ["prism", "mlp"])
def test_conditioner_learns(conditioner, make_config, make_batch):
    config = make_config(conditioner, "objects", optimizer_lr=1e-3)
    policy = build(PrismDiffusionPolicy, config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    before = {k: v.clone() for k, v in policy.diffusion.conditioner.named_parameters()}
    batch = make_batch("objects")
    losses = []
    for _ in range(15):
        loss = loss_of(policy, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for name, parameter in policy.diffusion.conditioner.named_parameters():
        assert not torch.equal(parameter, before[name]), name


def test_config_of_another_policy_is_refused(lerobot_config):
    with pytest.raises(
        TypeError, match=r"needs a PrismDiffusionConfig, got DiffusionConfig.*linear"
    ):
        PrismDiffusionPolicy(lerobot_config())


def test_missing_state_is_named(make_config):
    config = make_config()
    del config.input_features[STATE]
    with pytest.raises(ValueError, match=r"needs 'observation.state'.*observation.images.front"):
        PrismDiffusionPolicy(config)


def test_small_encoder_is_one_for_all_cameras(make_config):
    assert PrismDiffusionPolicy(make_config(image_encoder="small"))
    with pytest.raises(ValueError, match="one encoder for all cameras"):
        make_config(image_encoder="small", use_separate_rgb_encoder_per_camera=True)
