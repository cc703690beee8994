"""Exported files agree with their modules, wrong ones never appear, and errors help."""

import json
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from prism_motor.export import (
    ExportError,
    ParityError,
    check_parity,
    export_onnx,
    export_torchscript,
)
from prism_motor.nn import (
    INTERACTIONS,
    PolynomialConditioner,
    PolynomialLayer,
    advance_warmup,
    build_actor,
    make_interaction,
    prune,
)

onnxruntime = pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")

EXPORTERS = [(export_torchscript, "policy.pt"), (export_onnx, "policy.onnx")]


def awake(module):
    """Give every module gates and a warm-up that matter, as after training."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.rpartition(".")[2] == "gate":
                parameter.uniform_(0.3, 0.7)
    advance_warmup(module, 5)
    return module


MODULES = {
    **{f"degree-{k}": partial(PolynomialLayer, 6, 5, k) for k in (1, 2, 3, 4)},
    "no-bias": lambda: PolynomialLayer(6, 5, 3, bias=False),
    "bound": lambda: PolynomialLayer(6, 5, 3, bound=1.0),
    "warmup": lambda: PolynomialLayer(6, 5, 2, warmup=10),
    "double": lambda: PolynomialLayer(6, 5, 2, dtype=torch.float64),
    **{f"interaction-{name}": partial(make_interaction, name, 6, 5) for name in INTERACTIONS},
    "humanoid_gym": lambda: PolynomialConditioner.humanoid_gym(6, latent=8),
    "diffusion_policy": lambda: PolynomialConditioner.diffusion_policy(6, latent=8),
    "smolvla": lambda: PolynomialConditioner.smolvla(6, hidden=8),
    "bfm_zero": lambda: PolynomialConditioner.bfm_zero(6),
    "actor-mlp": lambda: build_actor("mlp", 6, 3, hidden=(8,)),
    "actor-prism": lambda: build_actor("prism", 6, 3, hidden=(8,), latent=5, warmup=7),
    "actor-prism-residual": lambda: build_actor(
        "prism-residual", 6, 3, hidden=(8,), latent=5, warmup=10
    ),
    "actor-prism-residual-gated": lambda: build_actor(
        "prism-residual-gated", 6, 3, hidden=(8,), latent=5
    ),
    "actor-prism-after": lambda: build_actor("prism-after", 6, 3, hidden=(8,), warmup=10),
    "actor-prism-bypass": lambda: build_actor("prism", 6, 3, hidden=(8,), latent=5, bypass=(0, 4)),
}  # fmt: skip
# ONNX takes about a second each: one of every kind of operation.
ONNX_MODULES = (
    "degree-1", "degree-4", "bound", "double", "interaction-explicit", "interaction-ccp",
    "interaction-glu", "diffusion_policy", "bfm_zero", "actor-prism", "actor-prism-residual",
    "actor-prism-residual-gated", "actor-prism-after", "actor-prism-bypass",
)  # fmt: skip


def build(name):
    torch.manual_seed(0)
    module = awake(MODULES[name]())
    return module, torch.zeros(1, 6, dtype=next(module.parameters()).dtype)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_exports_to_torchscript(name, tmp_path):
    module, example = build(name)
    path = export_torchscript(module, tmp_path / "policy.pt", example)
    inputs = [torch.randn(size, 6, dtype=example.dtype) for size in (1, 3, 64)]
    assert check_parity(module, path, inputs) <= 1e-5
    with torch.no_grad():
        assert torch.allclose(torch.jit.load(str(path))(inputs[2]), module(inputs[2]), atol=1e-5)


@pytest.mark.parametrize("name", ONNX_MODULES)
def test_modules_export_to_onnx(name, tmp_path):
    module, example = build(name)
    path = export_onnx(module, tmp_path / "policy.onnx", example)
    inputs = [torch.randn(size, 6, dtype=example.dtype) for size in (1, 3, 64)]
    assert check_parity(module, path, inputs) <= 1e-5
    assert [file.name for file in tmp_path.iterdir()] == ["policy.onnx"]  # no side file


def test_onnx_file_is_named_free_in_batch_and_carries_metadata(tmp_path):
    scale = 0.1 + 0.2
    path = export_onnx(
        PolynomialLayer(6, 5), tmp_path / "policy.onnx", torch.zeros(4, 6),
        input_names=["obs"], output_names=["actions"],
        metadata={"robot": "g1", "scales": [scale, 1 / 3], "dt": 0.01},
    )  # fmt: skip
    session = onnxruntime.InferenceSession(str(path))
    assert [(i.name, i.shape) for i in session.get_inputs()] == [("obs", ["batch", 6])]
    assert [(o.name, o.shape) for o in session.get_outputs()] == [("actions", ["batch", 5])]
    properties = session.get_modelmeta().custom_metadata_map
    assert properties["robot"] == "g1"
    assert json.loads(properties["scales"]) == [scale, 1 / 3]
    assert json.loads(properties["dt"]) == 0.01
    assert b".py" not in path.read_bytes()  # no source paths inside


class TwoStreams(nn.Module):
    """Several inputs and outputs, one input of integers."""

    def __init__(self):
        super().__init__()
        self.layer = PolynomialLayer(4, 3)
        self.task = nn.Embedding(5, 3)

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features and their sum with the task's embedding."""
        features = self.layer(x)
        return features, features + self.task(task).squeeze(1)


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
def test_several_inputs_and_outputs(export, name, tmp_path):
    example = (torch.zeros(2, 4), torch.tensor([[1], [4]]))
    module = TwoStreams()
    path = export(module, tmp_path / name, example)
    batch = (torch.randn(5, 4), torch.randint(0, 5, (5, 1)))
    assert check_parity(module, path, batch) <= 1e-5


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
def test_module_is_left_as_it_was(export, name, tmp_path, capfd, recwarn):
    module = nn.Sequential(PolynomialLayer(6, 5, warmup=3), nn.Dropout(0.5), nn.BatchNorm1d(5))
    module[2].eval()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    generator = torch.get_rng_state()
    export(module, tmp_path / name, torch.zeros(1, 6))
    assert [m.training for m in module] == [True, True, False]
    assert all(p.requires_grad for p in module.parameters())
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    # and quietly
    assert capfd.readouterr() == ("", "")
    assert not [w for w in recwarn if "torch" in str(w.filename)]


class Drifting(nn.Module):
    """Adds an error of our choice in the exported file alone."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, wrong once exported."""
        if torch.jit.is_scripting():
            return x + self.error
        else:  # not compiled by TorchScript
            return x + self.error if torch.onnx.is_in_onnx_export() else x


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
def test_a_wrong_file_never_appears(export, name, tmp_path):
    target = tmp_path / name
    target.write_text("the previous good file")
    with pytest.raises(ParityError, match=rf"{name}, batch of 1, output 0: .* by up to 0\.001"):
        export(Drifting(1e-3), target, torch.zeros(1, 6))
    assert target.read_text() == "the previous good file"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    export(Drifting(1e-6), target, torch.zeros(1, 6))  # within tolerance


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
def test_parity_check_finds_another_policy(export, name, tmp_path):
    module, example = build("degree-2")
    path = export(module, tmp_path / name, example)
    inputs = torch.randn(7, 6)
    with torch.no_grad():
        module.gate[0, 2] += 0.01
    with pytest.raises(ParityError, match=r"batch of 7, output 0: .*allowed"):
        check_parity(module, path, inputs)
    assert check_parity(module, path, inputs, tolerance=1.0) > 1e-5
    with torch.no_grad():
        module.gate[0, 2] = float("nan")
    with pytest.raises(ParityError, match="by up to nan"):
        check_parity(module, path, inputs)
    with pytest.raises(ParityError, match=r"shape \[7, 5\] in the file, \[7, 4\] in the module"):
        check_parity(PolynomialLayer(6, 4), path, inputs)


class Sampling(nn.Module):
    """Samples in evaluation mode too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a random output."""
        return x + torch.randn_like(x)


class BatchSized(nn.Module):
    """Computes something else for a single sample."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, halved for a batch of one."""
        return x / 2 if len(x) == 1 else x


class Summing(nn.Module):
    """Has no batch axis in its output."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum over the batch."""
        return x.sum(0)


class Dictionary(nn.Module):
    """Returns a dict."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the input by name."""
        return {"x": x}


def poisoned():
    module = PolynomialLayer(6, 5)
    nn.init.constant_(module.weight, float("inf"))
    return module


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Sampling(), "two calls in evaluation mode give different values"),
        (Summing(), r"output 0 has shape \[6\].*first axis must be the batch"),
        (Dictionary(), "tuple of tensors, got dict"),
        (poisoned(), "PolynomialLayer: output 0 is not finite.*NaN and infinity"),
    ],
    ids=["sampling", "summing", "dictionary", "not finite"],
)
def test_modules_that_no_file_could_reproduce(export, name, module, message, tmp_path):
    with pytest.raises(ExportError, match=message):
        export(module, tmp_path / name, torch.zeros(1, 6))
    assert not list(tmp_path.iterdir())


def test_onnx_refuses_a_policy_that_depends_on_the_batch_size(tmp_path):
    with pytest.raises(ExportError, match="batch"):
        export_onnx(BatchSized(), tmp_path / "policy.onnx", torch.zeros(1, 6))
    assert not list(tmp_path.iterdir())


def test_unscriptable_modules_are_pointed_to_onnx(tmp_path):
    class Unscriptable(nn.Module):
        def forward(self, x):
            return x * globals()["torch"].ones(1)

    with pytest.raises(ExportError, match=r"Unscriptable is not scriptable.*export_onnx"):
        export_torchscript(Unscriptable(), tmp_path / "policy.pt", torch.zeros(1, 6))
    export_onnx(Unscriptable(), tmp_path / "policy.onnx", torch.zeros(1, 6))


@pytest.mark.parametrize(("export", "name"), EXPORTERS)
def test_bad_arguments(export, name, tmp_path):
    layer, example = PolynomialLayer(6, 5), torch.zeros(1, 6)
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist. Create it"):
        export(layer, tmp_path / "nowhere" / name, example)
    with pytest.raises(ValueError, match=r"must end in .*got 'policy.bin'"):
        export(layer, tmp_path / "policy.bin", example)
    with pytest.raises(ValueError, match=r"batch axis in front.*got shape \[6\].*unsqueeze"):
        export(layer, tmp_path / name, torch.zeros(6))
    with pytest.raises(ValueError, match=r"same batch size, got shapes \[2, 4\], \[3, 1\]"):
        export(TwoStreams(), tmp_path / name, (torch.zeros(2, 4), torch.zeros(3, 1).long()))
    with pytest.raises(TypeError, match="tensor or a tuple of tensors, got ndarray"):
        export(layer, tmp_path / name, example.numpy())
    with pytest.raises(TypeError, match=r"Expected an nn.Module to export, got function"):
        export(not_a_module, tmp_path / name, example)


def not_a_module(x):
    return x


def test_bad_names_and_metadata(tmp_path):
    layer, path, example = PolynomialLayer(6, 5), tmp_path / "policy.onnx", torch.zeros(1, 6)
    with pytest.raises(ValueError, match=r"input_names must be a list of 1 name.*got 'obs'"):
        export_onnx(layer, path, example, input_names="obs")
    with pytest.raises(ValueError, match="output_names must be a list of 1 name"):
        export_onnx(layer, path, example, output_names=["a", "b"])
    with pytest.raises(TypeError, match=r"metadata\['gains'\] is a Tensor.*tolist"):
        export_onnx(layer, path, example, metadata={"gains": torch.ones(2)})
    with pytest.raises(FileNotFoundError, match="No exported file"):
        check_parity(layer, path, example)


def test_missing_packages_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"export_onnx needs onnxscript.*prism-motor\[deploy\]"):
        export_onnx(PolynomialLayer(6, 5), tmp_path / "policy.onnx", torch.zeros(1, 6))


def test_a_pruned_actor_is_smaller_and_says_the_same(tmp_path):
    torch.manual_seed(0)
    actor = build_actor("prism", 47, 12, gate_init=1.0)
    with torch.no_grad():
        actor.encoder.interaction.gate[0, ::2] = 0
    x = torch.randn(9, 47)
    files = [tmp_path / "whole.onnx", tmp_path / "pruned.onnx"]
    for network, file in zip((actor, prune(actor)), files, strict=True):
        export_onnx(network, file, x[:1])
        session = onnxruntime.InferenceSession(file)
        (said,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        np.testing.assert_allclose(said, actor(x).detach().numpy(), atol=1e-5)
    # Half of the second factor's 256 rows of 47 weights and a bias, in single precision.
    cut = 128 * 48 * 4
    assert files[1].stat().st_size < files[0].stat().st_size - 0.8 * cut
