"""Policies as files that run without this package: TorchScript, single-file ONNX, a runner.

Every export is compared with its module before the file gets its name, so a file that exists is one
that agrees::

    export_onnx(actor, "policy.onnx", torch.zeros(1, 705), metadata={"action_scale": 0.25})
    export_torchscript(actor, "policy.pt", torch.zeros(1, 705))

The module itself is not changed: a copy on the CPU in evaluation mode is exported.
"""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.export.files import export_onnx, export_torchscript
    from prism_motor.export.inputs import Batch, ExportError
    from prism_motor.export.parity import ParityError, check_parity

__all__ = [
    "Batch",
    "ExportError",
    "ParityError",
    "check_parity",
    "export_onnx",
    "export_torchscript",
]

# The robot's runner lives here too and must not load torch.
__getattr__ = lazy(
    __name__,
    {
        "Batch": "inputs",
        "ExportError": "inputs",
        "ParityError": "parity",
        "check_parity": "parity",
        "export_onnx": "files",
        "export_torchscript": "files",
    },
)
