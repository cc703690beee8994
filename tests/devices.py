"""A device that this machine does not need to have: its tensors compute on the CPU but keep apart.

Within :class:`PretendedDevice`, tensors can be moved to and made on ``lazy:0``. Every operation on
them has the result that it has on the CPU, to the last bit, but as on a GPU it is an error to mix
them with tensors on the CPU (only single numbers may join) or to turn them into arrays. Transfers
and waits, for a number or for how many entries are chosen, are counted.
"""

from collections import Counter

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode
from torch.utils._pytree import tree_flatten, tree_map

AWAY = torch.device("lazy:0")
"""The pretended device."""

_aten = torch.ops.aten
_COPIES = (_aten.copy_.default, _aten._foreach_copy_.default)
_READS = (
    _aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default,
    _aten.nonzero.default,
)  # fmt: skip
_INDEXING = (_aten.index.Tensor, _aten.index_put_.default, _aten.index_put.default)


class AwayTensor(torch.Tensor):
    """A tensor on the pretended device."""

    @staticmethod
    def __new__(cls, inner):
        with torch.inference_mode(False):  # views of parameters are no inference tensors
            return torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=AWAY
            )

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"AwayTensor({self.inner})"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _call(func, args, kwargs or {}, Counter())


class _Literals(TorchFunctionMode):
    """Makes tensors of Python numbers, and the reverse, by way of the CPU: no operation does."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.tolist and isinstance(args[0], AwayTensor):
            return args[0].cpu().tolist()
        if func is torch.Tensor.new_tensor and isinstance(args[0], AwayTensor):
            return torch.tensor(args[1], dtype=args[0].dtype).to(AWAY)
        new = func is torch.tensor or (
            func is torch.as_tensor and not isinstance(args[0], AwayTensor)
        )
        if new and torch.device(kwargs.get("device") or "cpu") == AWAY:
            return func(*args, **{**kwargs, "device": "cpu"}).to(AWAY)
        return func(*args, **kwargs)


class PretendedDevice(TorchDispatchMode):
    """Lets tensors be on :data:`AWAY`.

    Attributes:
        counts: Transfers ``to`` and ``from`` the device, and ``waits`` for a number.
    """

    def __init__(self):
        super().__init__()
        self.counts = Counter()
        self._literals = _Literals()

    def __enter__(self):
        self._literals.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._literals.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
            # In inference mode, operations that consist of others arrive whole.
            _push_mode(self)
            try:
                with torch._C.DisableTorchFunction():
                    return func.decompose(*args, **(kwargs or {}))
            finally:
                _pop_mode()
        return _call(func, args, kwargs or {}, self.counts)


def _call(func, args, kwargs, counts):
    flat = tree_flatten((args, kwargs))[0]
    given = [value for value in flat if isinstance(value, torch.Tensor)]
    away = [value for value in given if isinstance(value, AwayTensor)]
    target = kwargs.get("device")
    if not away and target != AWAY:
        return func(*args, **kwargs)
    returns_away = target == AWAY if target is not None else bool(away)
    here = [value for value in given if not isinstance(value, AwayTensor)]
    if func in _COPIES:
        if here:
            counts["from" if isinstance(_first(args[1]), AwayTensor) else "to"] += 1
    elif func is _aten._to_copy.default:
        if bool(away) != returns_away:
            counts["to" if returns_away else "from"] += 1
    else:
        if away and any(value.dim() for value in here):
            raise RuntimeError(f"{func} got tensors on {AWAY} and on the CPU.")
        if func in _READS or _is_masked(func, args):
            counts["waits"] += 1
    if target is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    wrappers = {id(value.inner): value for value in away}
    plain = tree_map(lambda v: v.inner if isinstance(v, AwayTensor) else v, (args, kwargs))
    found = func(*plain[0], **plain[1])
    if not returns_away:
        return found

    def wrap(value):
        if not isinstance(value, torch.Tensor) or isinstance(value, AwayTensor):
            return value
        return wrappers.get(id(value)) if id(value) in wrappers else AwayTensor(value)

    if func in _COPIES and not isinstance(_first(args[0]), AwayTensor):
        return args[0]
    return tree_map(wrap, found)


def _is_masked(func, args):
    """Whether an operation indexes by a mask, whose entries have to be counted first."""
    masks = (one for one in args[1] if one is not None) if func in _INDEXING else ()
    return any(one.dtype == torch.bool for one in masks)


def _first(value):
    return value[0] if isinstance(value, (list, tuple)) else value
