"""Independent computations that the layers are tested against: plain Python, no prism."""

from itertools import product

import torch


def randomise(layer, gate_scale=0.7):
    """Give every parameter, gates and biases included, a generic value."""
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.normal_(std=gate_scale if name.endswith("gate") else 0.8)
    return layer


def gated_recursion(layer, x, scale=1.0):
    """The paper's recursion for one input vector, feature by feature, in Python floats."""
    weight, bias, gate = layer.weight.tolist(), None, None
    if layer.bias is not None:
        bias = layer.bias.tolist()
    if layer.gate is not None:
        gate = layer.gate.tolist()
    x = x.tolist()
    out = []
    for j in range(layer.out_features):

        def affine(k, j=j):
            value = sum(w * v for w, v in zip(weight[k][j], x, strict=True))
            return value + (bias[k][j] if bias is not None else 0.0)

        psi = affine(0)
        for k in range(1, layer.degree):
            psi *= 1 + scale * gate[k - 1][j] * affine(k)
        out.append(psi)
    return torch.tensor(out, dtype=torch.float64)


def explicit_coefficients(constant, linear):
    """Multiply out prod_k (c_k + a_k.x) for one feature by visiting every choice of terms."""
    degree, inputs = len(linear), len(linear[0])
    table = {}
    for choice in product(range(-1, inputs), repeat=degree):
        value = 1.0
        for k, i in enumerate(choice):
            value *= constant[k] if i < 0 else linear[k][i]
        key = tuple(sorted(i for i in choice if i >= 0))
        table[key] = table.get(key, 0.0) + value
    return table
