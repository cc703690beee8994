"""Expert clips: windows, priorities, stretches, and clips that cannot be used."""

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.learning.experts import ExpertClip, ExpertClips, clip_priority


def clip(number, frames, actions=True):
    time = torch.arange(float(frames))
    rows = torch.stack([torch.full((frames,), float(number)), time], dim=1)
    return ExpertClip(f"clip{number}", rows, time.unsqueeze(1) if actions else None)


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def test_windows_are_consecutive_frames_of_one_clip_with_successors():
    experts = ExpertClips([clip(0, 9), clip(1, 30), clip(2, 12)], window=8)
    batch = experts.sample(8 * 2000, draws())
    frames = batch.observation.view(-1, 8, 2)
    assert (frames[:, :, 0] == frames[:, :1, 0]).all()
    assert (frames[:, 1:, 1] - frames[:, :-1, 1] == 1).all()
    step = batch.next_observation - batch.observation
    assert (step == torch.tensor([0.0, 1.0])).all()
    # Every start that leaves room for the successors, and no other, in every clip.
    for number, length in enumerate((9, 30, 12)):
        starts = frames[frames[:, 0, 0] == number][:, 0, 1].unique()
        assert starts.tolist() == list(range(length - 8))


def test_priorities_follow_the_emd():
    assert [clip_priority(emd) for emd in (0.0, 0.5, 1.0, 2.0, 9.0)] == [2, 2, 4, 16, 16]
    experts = ExpertClips([clip(0, 20), clip(1, 20)], window=8)
    assert experts.priorities.tolist() == [0.5, 0.5]
    experts.prioritise({"clip0": 0.3, "clip1": 5.0})
    assert experts.priorities.tolist() == pytest.approx([2 / 18, 16 / 18])
    drawn = experts.sample(8 * 4000, draws()).observation[::8, 0]
    assert drawn.mean().item() == pytest.approx(16 / 18, abs=0.02)
    with pytest.raises(InputError, match="clip1"):
        experts.prioritise({"clip0": 1.0})


def test_stretches_come_from_long_clips_alone():
    experts = ExpertClips([clip(0, 20), clip(1, 26), clip(2, 40)], window=8)
    frames = experts.stretches(500, 25, draws())
    assert frames.shape == (500, 25, 2)
    assert set(frames[:, 0, 0].tolist()) == {1.0, 2.0}
    assert (frames[:, 1:, 1] - frames[:, :-1, 1] == 1).all()
    assert frames[:, 0, 1].min() == 1  # successors: the first frame is never one
    assert frames[:, -1, 1].max() == 39
    assert experts.stretches(5, 40, draws()) is None


def test_clips_that_cannot_be_used_are_named():
    with pytest.raises(InputError, match=r"at least 9 frames.*clip3 \(8\)"):
        ExpertClips([clip(0, 9), clip(3, 8)], window=8)
    bad = clip(4, 20)
    bad.observations[3, 1] = float("nan")
    with pytest.raises(InputError, match="not finite: clip4"):
        ExpertClips([clip(0, 9), bad], window=8)
    with pytest.raises(InputError, match="at least one motion clip"):
        ExpertClips([], window=8)
    mixed = ExpertClips([clip(0, 9), clip(1, 9, actions=False)], window=8)
    assert mixed.actions is None
    assert ExpertClips([clip(0, 9), clip(1, 12)], window=8).actions.shape == (21, 1)
