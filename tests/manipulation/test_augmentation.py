"""Random shifts of training images."""

import torch

from prism_motor.manipulation.augmentation import shift_images

IMAGES = torch.rand(6, 2, 3, 12, 10, generator=torch.Generator().manual_seed(0))


def shifts(seed=1, update=0, camera=0, most=4):
    """Find by how much each sample moved, by comparing with all possible shifts."""
    moved = shift_images(IMAGES, most, seed, update, camera)
    rows, columns = torch.arange(12), torch.arange(10)
    found = []
    for sample in range(len(IMAGES)):
        fits = [
            (down, right)
            for down in range(-most, most + 1)
            for right in range(-most, most + 1)
            if torch.equal(
                moved[sample],
                IMAGES[sample][
                    ..., (rows + down).clamp(0, 11)[:, None], (columns + right).clamp(0, 9)
                ],
            )
        ]
        assert len(fits) == 1, "every image moves as a whole, with its edges repeated"
        found += fits
    return found


def test_samples_move_by_whole_pixels_within_the_limit_and_together_in_time():
    drawn = [shift for update in range(40) for shift in shifts(update=update)]
    for axis in zip(*drawn, strict=True):
        assert {*axis} == set(range(-4, 5))


def test_shifts_follow_from_seed_update_and_camera_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert shifts() == shifts()
    assert torch.equal(torch.get_rng_state(), before)
    others = [shifts(seed=2), shifts(update=1), shifts(camera=1)]
    assert all(other != shifts() for other in others)
