"""Products of neighbouring frames with shared weights, against plain loops over time."""

import pytest
import torch
from torch import nn

from prism_motor.export import export_onnx
from prism_motor.nn import (
    PolynomialLayer,
    ScaledPolynomialLayer,
    TemporalPolynomialLayer,
    count_parameters,
    prune,
)


def test_scaled_layer_ignores_the_size_of_later_factors():
    torch.manual_seed(0)
    layer, x = ScaledPolynomialLayer(6, 8, 2, gate_init=1.0, bias=False), torch.randn(50, 6)
    before = layer(x)
    with torch.no_grad():
        layer.weight[1] *= 100
    torch.testing.assert_close(layer(x), before, rtol=1e-3, atol=1e-4)
    first, second = x @ layer.weight[0].T, x @ layer.weight[1].T
    expected = first * (1 + second / second.square().mean(1, keepdim=True).sqrt())
    torch.testing.assert_close(before, expected, rtol=1e-3, atol=1e-4)


def test_scaled_layer_has_the_weights_of_the_plain_one_and_no_expansion():
    layer = ScaledPolynomialLayer(3, 4, 2)
    layer.load_state_dict(PolynomialLayer(3, 4, 2).state_dict())
    with pytest.raises(TypeError, match=r"not a polynomial and cannot be expanded or pruned"):
        layer.expand()
    with pytest.raises(TypeError, match=r"cannot be expanded or pruned"):
        prune(nn.Sequential(layer))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("frames", "window", "extra"), [(5, 2, 0), (4, 3, 2), (3, 3, 1), (2, 1, 0)]
)
def test_formula_by_a_loop_over_time(frames, window, extra, scaled):
    torch.manual_seed(0)
    size = 3
    layer = TemporalPolynomialLayer(
        frames, size, 4, window=window, extra_features=extra, scaled=scaled
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(6, frames * size + extra, dtype=torch.double)
    weight, bias, gate = layer.products.weight, layer.products.bias, layer.products.gate
    estimate = torch.zeros(6, 4, dtype=torch.double)
    for t in range(frames - window + 1):
        seen = x[:, t * size : (t + window) * size]
        first, second = (seen @ weight[k].T + bias[k] for k in range(2))
        if scaled:
            second = second / (second.square().mean(1, keepdim=True) + 1e-6).sqrt()
        estimate += layer.average[t] * first * (1 + gate[0] * second)
    torch.testing.assert_close(layer.estimate(x), estimate)
    state = x[:, (frames - 1) * size :] @ layer.state.weight.T + layer.state.bias
    torch.testing.assert_close(layer(x), estimate * (1 + layer.gate * state))
    torch.testing.assert_close(layer(x.view(2, 3, -1)), layer(x).view(2, 3, -1))


def test_weights_grow_with_frames_by_one_average_each():
    short, long = (TemporalPolynomialLayer(frames, 47, 64) for frames in (15, 16))
    assert count_parameters(long) - count_parameters(short) == 64
    assert count_parameters(short) < count_parameters(PolynomialLayer(15 * 47, 64)) / 3


def test_four_frames_are_multiplied_or_all_of_a_shorter_history():
    assert [TemporalPolynomialLayer(frames, 2, 3).window for frames in (1, 3, 4, 9)] == [1, 3, 4, 4]


def test_the_same_moments_a_frame_later_say_the_same():
    torch.manual_seed(0)
    layer, frames = TemporalPolynomialLayer(4, 2, 3, window=2), torch.randn(7, 5, 2)
    early, late = (layer.estimate(part.flatten(1)) for part in (frames[:, :4], frames[:, 1:]))
    gone, come = (layer.products(part.flatten(1)) for part in (frames[:, :2], frames[:, 3:]))
    torch.testing.assert_close(late - early, (come - gone) * 3**-0.5)


def test_it_reads_a_mass_off_its_history_where_a_linear_front_cannot():
    """u = m a: force and acceleration of five moments tell the mass that the command needs."""
    torch.manual_seed(0)
    mass = 0.5 + 1.5 * torch.rand(4000, 1)
    acceleration, wanted = torch.randn(4000, 5), torch.randn(4000, 1)
    frames = torch.stack([acceleration, mass * acceleration], dim=-1).flatten(1)
    x, target = torch.cat([frames, wanted], 1), mass * wanted
    errors = {}
    for name, front in {
        "temporal": TemporalPolynomialLayer(5, 2, 16, window=1, extra_features=1),
        "linear": nn.Sequential(nn.Linear(11, 16), nn.SiLU()),
    }.items():
        torch.manual_seed(1)
        model = nn.Sequential(front, nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(300):
            optimizer.zero_grad()
            loss = (model(x) - target).square().mean()
            loss.backward()
            optimizer.step()
        errors[name] = loss.item() / target.var().item()
    assert errors["temporal"] < 0.5 * errors["linear"]


def test_it_is_exported_and_scripted(tmp_path):
    torch.manual_seed(0)
    layer, x = TemporalPolynomialLayer(4, 3, 5, extra_features=2), torch.randn(1, 14)
    for model in (layer, layer.products):
        seen = torch.randn(6, model.in_features)
        torch.testing.assert_close(torch.jit.script(model)(seen), model(seen))
    export_onnx(nn.Sequential(layer, nn.Linear(5, 2)), tmp_path / "layer.onnx", x)
    onnxruntime = pytest.importorskip("onnxruntime", reason="extra 'deploy'")
    session = onnxruntime.InferenceSession(str(tmp_path / "layer.onnx"))
    assert session.get_inputs()[0].shape[-1] == 14


def test_same_seed_same_weights_and_state_dicts_fit():
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append(TemporalPolynomialLayer(3, 2, 4))
    x = torch.randn(5, 6)
    torch.testing.assert_close(made[0](x), made[1](x), rtol=0, atol=0)
    other = TemporalPolynomialLayer(3, 2, 4)
    other.load_state_dict(made[0].state_dict())
    torch.testing.assert_close(other(x), made[0](x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames": 0}, r"frames must be"),
        ({"window": 4}, r"window must be at most the number of frames, 3, got 4"),
        ({"window": 0}, r"window must be"),
        ({"extra_features": -1}, r"extra_features must be 0 or more, got -1"),
        ({"gate_init": float("nan")}, r"gate_init must be finite"),
        ({"degree": 0}, r"degree"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TemporalPolynomialLayer(**{"frames": 3, "frame_features": 2, "out_features": 4, **options})


def test_an_input_of_another_size_is_explained():
    layer = TemporalPolynomialLayer(3, 2, 4, extra_features=1)
    with pytest.raises(ValueError, match=r"3 frames of 2, then 1 more; got \[5, 6\]"):
        layer(torch.zeros(5, 6))
