"""What passes between environments and a learner that may be on another device."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor


class DeviceLink:
    """Brings the learner what a control step showed, and the environments its actions.

    Each way takes one transfer, whatever is sent: the values of a step are packed into one buffer,
    pinned for CUDA, so that its copy runs while Python goes on. On one device nothing is copied.

    Args:
        device: Where the learner is.
        source: Where the environments are: on the same device, or on the CPU.
    """

    def __init__(self, device: str | torch.device, source: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self.is_local = self.device == torch.device(source)
        self._cuda = self.device.type == "cuda"
        self._buffer = torch.empty(0)

    def send(
        self, observations: TensorDict, *others: Tensor
    ) -> tuple[TensorDict, tuple[Tensor, ...]]:
        """Return observations and other numbers of a step on the device, there as float32.

        What was sent before must have been used: :meth:`fetch` waits for that.
        """
        if self.is_local:
            return observations, others
        names = list(observations.keys())
        tensors = [*(observations[name] for name in names), *others]
        moved = self._move(tensors)
        seen = dict(zip(names, moved, strict=False))
        there = TensorDict(seen, batch_size=observations.batch_size, device=self.device)  # type: ignore[arg-type]
        return there, tuple(moved[len(names) :])

    def fetch(self, actions: Tensor) -> Tensor:
        """Return actions where the environments are; on the CPU it waits until they are there."""
        return actions if self.is_local else actions.cpu()

    def _move(self, tensors: list[Tensor]) -> list[Tensor]:
        sizes = [tensor.numel() for tensor in tensors]
        if self._buffer.numel() != sum(sizes):
            self._buffer = torch.empty(sum(sizes), pin_memory=self._cuda)
        for part, tensor in zip(self._buffer.split(sizes), tensors, strict=True):
            part.view(tensor.shape).copy_(tensor)
        moved = self._buffer.to(self.device, non_blocking=self._cuda).split(sizes)
        return [part.view(t.shape) for part, t in zip(moved, tensors, strict=True)]
