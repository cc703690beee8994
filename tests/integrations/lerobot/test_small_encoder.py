import pytest
import torch

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from lerobot.configs.types import FeatureType, PolicyFeature

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismDiffusionPolicy
from prism_motor.integrations.lerobot.modeling_prism_diffusion import SmallRgbEncoder


def make_config(size=32, **options):
    return PrismDiffusionConfig(
        image_encoder="small",
        input_features={
            "observation.state": PolicyFeature(FeatureType.STATE, (5,)),
            "observation.images.front": PolicyFeature(FeatureType.VISUAL, (3, size, size)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (4,))},
        down_dims=(8, 16),
        n_groups=4,
        diffusion_step_embed_dim=8,
        spatial_softmax_num_keypoints=6,
        device="cpu",
        **options,
    )


def test_it_replaces_the_resnet_and_is_trained():
    policy = PrismDiffusionPolicy(make_config())
    encoder = policy.diffusion.rgb_encoder
    assert isinstance(encoder, SmallRgbEncoder)
    assert sum(parameter.numel() for parameter in encoder.parameters()) < 100_000
    batch = {
        "observation.state": torch.randn(2, 2, 5),
        "observation.images.front": torch.rand(2, 2, 3, 32, 32),
        "action": torch.randn(2, 16, 4),
        "action_is_pad": torch.zeros(2, 16, dtype=torch.bool),
    }
    loss, _ = policy.forward(batch)
    loss.backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_features_tell_where_a_spot_is():
    encoder = SmallRgbEncoder(make_config())
    images = torch.zeros(2, 3, 32, 32)
    images[0, :, 4:8, 4:8] = images[1, :, 24:28, 24:28] = 1
    found = encoder.pool(encoder.convolutions(images))
    assert found.shape == (2, 6, 2)
    assert (found[0] - found[1]).abs().max() > 1e-3


def test_a_wide_image_is_cut_to_its_middle_if_asked():
    torch.manual_seed(0)
    policy = PrismDiffusionPolicy(make_config(resize_shape=(32, 32), crop_square=True)).eval()
    state, images = torch.randn(1, 2, 5), torch.rand(1, 2, 1, 3, 48, 64)

    def condition(images):
        batch = {"observation.state": state, "observation.images": images}
        return policy.diffusion._prepare_global_conditioning(batch)

    middle = condition(images[..., 8:56])
    torch.testing.assert_close(condition(images), middle, rtol=0, atol=0)
    policy.config.crop_square = False
    assert (condition(images) - middle).abs().max() > 1e-4


def test_images_of_any_size_fit_after_resizing():
    config = make_config(resize_shape=(32, 32))
    torch.manual_seed(0)
    resizing = SmallRgbEncoder(config)
    torch.manual_seed(0)
    plain = SmallRgbEncoder(make_config())
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(resizing(images), plain(images))  # of this size nothing is changed
    large = images.repeat_interleave(4, dim=2).repeat_interleave(4, dim=3)
    assert torch.allclose(resizing(large), plain(images), atol=0.05)


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match="multiples of 4, got 30 x 30"):
        SmallRgbEncoder(make_config(30))
    with pytest.raises(ValueError, match="does not crop"):
        SmallRgbEncoder(make_config(crop_shape=(16, 16)))
    with pytest.raises(ValueError, match="multiples of 4, got 30 x 32"):
        SmallRgbEncoder(make_config(resize_shape=(30, 32)))
    with pytest.raises(ValueError, match="Unknown image_encoder 'tiny'"):
        PrismDiffusionConfig(image_encoder="tiny")
