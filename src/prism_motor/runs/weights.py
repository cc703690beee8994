"""One hash of a policy's weights, by which its evaluations are recognised."""

from __future__ import annotations

import hashlib

from torch import Tensor


def hash_weights(tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of a state dict: names, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
