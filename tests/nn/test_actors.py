import dataclasses
import json

import pytest
import torch

from prism_motor.nn import (
    ACTORS,
    GATED,
    INTERACTIONS,
    ActorConfig,
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
    advance_warmup,
    build_actor,
    count_flops,
    count_parameters,
    matched_mlp,
    parameter_groups,
    register_actor,
)
from prism_motor.nn.actors import ACTOR_ALIASES

PAPER_COUNTS = [
    ("mlp", {}, 527_244),
    ("mlp", {"hidden": (816, 352, 160)}, 922_092),
    ("mlp", {"hidden": (648, 328, 160)}, 724_932),
    ("mlp", {"hidden": (928, 384, 224)}, 1_100_844),
    ("mlp", {"hidden": (768, 512, 256, 128)}, 1_101_708),
    ("prism", {"degree": 1}, 543_884),
    ("prism", {}, 724_876),
    ("prism", {"degree": 3}, 905_868),
    ("prism", {"latent": 334, "hidden": (513, 256, 128)}, 921_715),
    ("prism-residual", {"degree": 1}, 790_412),
    ("prism-residual", {}, 921_996),
    ("prism-residual", {"degree": 3}, 1_053_580),
    ("prism-residual-gated", {"degree": 1}, 790_412),
    ("prism-residual-gated", {}, 921_996 + 256),
    ("prism-residual-gated", {"degree": 3}, 1_053_580 + 2 * 256),
    ("prism-after", {"degree": 1}, 527_244 + 128 * 128 + 128),
    ("prism-after", {}, 527_244 + 2 * (128 * 128 + 128) + 128),
    # 75 of 705 inputs by-pass the two factors and enter the trunk beside the 256 features.
    ("prism", {"bypass": tuple(range(75))}, 724_876 - 2 * 75 * 256 + 75 * 512),
    ("prism-residual", {"bypass": tuple(range(75))}, 921_996 - 2 * 75 * 256 + 75 * 512),
]


@pytest.mark.parametrize(("name", "options", "count"), PAPER_COUNTS)
def test_paper_parameter_counts(name, options, count):
    assert count_parameters(build_actor(name, 705, 12, **options)) == count


@pytest.mark.parametrize("name", ACTORS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (47, 12), (235, 29)])
def test_any_size_scripts_and_round_trips(name, inputs, outputs):
    actor = build_actor(name, inputs, outputs, hidden=(16, 8))
    x = torch.randn(3, 2, inputs)
    y = actor(x)
    assert y.shape == (3, 2, outputs)
    torch.testing.assert_close(torch.jit.script(actor)(x), y)
    twin = build_actor(actor.config, inputs, outputs)
    twin.load_state_dict(actor.state_dict())
    assert torch.equal(twin(x), y)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_residual_encoder_formula(degree):
    actor = build_actor("prism-residual", 9, 2, latent=5, hidden=(4,), degree=degree, warmup=0)
    e = actor.encoder
    x = torch.randn(6, 9)
    h = e.lift(x)
    p = e.factors[0](h)
    for k in range(1, degree):
        p = p + e.factors[k](h) * e.states[k - 1](p)
    expected = torch.nn.functional.elu(e.skip(x) + e.branch_out(p))
    torch.testing.assert_close(e(x), expected)
    assert e.warmup is None


@torch.no_grad()
def test_gated_residual_encoder_formula():
    actor = build_actor("prism-residual-gated", 9, 2, latent=5, hidden=(4,), degree=3)
    e = actor.encoder
    assert torch.equal(e.gate, torch.ones(2, 5))
    assert e.warmup is None
    torch.manual_seed(0)
    twin = build_actor("prism-residual", 9, 2, latent=5, hidden=(4,), degree=3, warmup=0)
    twin.load_state_dict({k: v for k, v in actor.state_dict().items() if k != "encoder.gate"})
    x = torch.randn(6, 9)
    assert torch.equal(actor(x), twin(x))  # gates of one change nothing
    e.gate.copy_(torch.randn(2, 5))
    h = e.lift(x)
    p1 = e.factors[0](h)
    p2 = p1 + e.gate[0] * e.factors[1](h) * e.states[0](p1)
    p3 = p2 + e.gate[1] * e.factors[2](h) * e.states[1](p2)
    torch.testing.assert_close(e.features(x), p3)


@torch.no_grad()
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_polynomial_after_the_mlp_fades_in_from_the_mlp(degree):
    torch.manual_seed(3)
    mlp = build_actor("mlp", 9, 2, hidden=(7, 5))
    torch.manual_seed(3)
    after = build_actor("prism-after", 9, 2, hidden=(7, 5), degree=degree, warmup=4, gate_init=0.5)
    x = torch.randn(6, 9)
    assert torch.equal(after(x), mlp(x))  # before the first update
    layer, linear = after.trunk[-1]
    layer.weight.normal_()
    layer.bias.normal_()
    advance_warmup(after)
    h = mlp.trunk[:-1](x)
    psi = h @ layer.weight[0].T + layer.bias[0]
    for k in range(1, degree):
        psi = psi * (1 + 0.25 * 0.5 * (h @ layer.weight[k].T + layer.bias[k]))
    torch.testing.assert_close(after(x), linear(psi))


@torch.no_grad()
@pytest.mark.parametrize("name", ["prism", "prism-residual", "prism-residual-gated"])
def test_bypassed_inputs_join_after_the_polynomial(name):
    actor = build_actor(name, 9, 2, latent=5, hidden=(4,), bypass=(7, 2))
    x = torch.randn(3, 4, 9)
    kept = [0, 1, 3, 4, 5, 6, 8]
    z = actor.encoder.encoder(x[..., kept])
    assert torch.equal(actor.encoder(x), torch.cat([z, x[..., [2, 7]]], dim=-1))
    moved = x.clone()
    moved[..., [2, 7]] += 1.0
    assert torch.equal(actor.encoder(moved)[..., :5], z)
    assert not torch.equal(actor(moved), actor(x))
    torch.testing.assert_close(torch.jit.script(actor)(x), actor(x))
    twin = build_actor(ActorConfig.from_dict(json.loads(json.dumps(actor.config.to_dict()))), 9, 2)
    twin.load_state_dict(actor.state_dict())
    assert torch.equal(twin(x), actor(x))


@pytest.mark.parametrize(
    ("bypass", "words"),
    [
        (("clock",), "'clock' is a name"),
        ((9,), "from 0 to 8, got 9"),
        ((1, 1), "listed twice"),
        (tuple(range(9)), "all 9 inputs"),
    ],
)
def test_inputs_that_cannot_bypass(bypass, words):
    with pytest.raises(ValueError, match=words):
        build_actor("prism", 9, 2, bypass=bypass)


@torch.no_grad()
@pytest.mark.parametrize("name", ["prism-residual", "prism-residual-gated"])
def test_products_of_the_residual_encoder_are_named_by_inputs(name):
    """h = x for the first three inputs, so the maps that make a product can be written down."""
    encoder = build_actor(name, 4, 2, latent=3, hidden=(4,), warmup=4).encoder
    for parameter in (encoder.lift, encoder.states[0], *encoder.factors):
        parameter.weight.zero_()
    for i in range(3):
        encoder.lift.weight[i, i] = encoder.states[0].weight[i, i] = 1.0
    encoder.factors[0].weight[2, 1] = 3.0  # p_1 of feature 2 is 3 b
    encoder.factors[1].weight[2, 0] = -2.0  # A_2 of feature 2 is -2 a
    advance_warmup(encoder, 2)
    if encoder.gate is not None:
        encoder.gate.fill_(0.5)
    (found,) = encoder.interactions(["a", "b", "c", "d"], top=1)
    assert (found.feature, found.factors, found.inputs) == (2, (1, 2), ("b", "a"))
    scale = 0.5 if encoder.gate is None else 0.25
    assert found.coefficient == pytest.approx(-6.0 * scale)
    assert found.share == pytest.approx(1.0)
    assert len(encoder.interactions(top=None)) == 3


def test_gates_of_the_residual_encoder_are_not_decayed():
    actor = build_actor("prism-residual-gated", 4, 2, latent=3, hidden=(4,))
    decayed, undecayed = parameter_groups(actor, 0.1)
    assert any(p is actor.encoder.gate for p in undecayed["params"])
    assert not any(p is actor.encoder.gate for p in decayed["params"])


def test_config_is_frozen_and_survives_json():
    for config in (
        AfterActorConfig(warmup=7),
        GatedResidualActorConfig(gate_init=0.5),
        PrismActorConfig(bypass=("clock", 3)),
        ActorConfig(hidden=(3, 2), activation="relu"),
        PrismActorConfig(degree=3, warmup=7),
        ResidualActorConfig(latent=12),
    ):
        assert ActorConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.hidden = (1,)


@pytest.mark.parametrize(("old", "new"), ACTOR_ALIASES.items())
def test_former_names_still_build_the_same_actor(old, new):
    torch.manual_seed(1)
    former = build_actor(old, 9, 2, latent=8, hidden=(4,))
    torch.manual_seed(1)
    present = build_actor(new, 9, 2, latent=8, hidden=(4,))
    assert former.config == present.config
    x = torch.randn(3, 9)
    assert torch.equal(former(x), present(x))
    stored = {**present.config.to_dict(), "name": old}  # what earlier runs wrote
    assert ActorConfig.from_dict(stored) == present.config


def test_an_actor_of_ones_own_is_built_by_its_name(monkeypatch):
    monkeypatch.setattr("prism_motor.nn.actors.ACTORS", dict(ACTORS))

    @register_actor
    @dataclasses.dataclass(frozen=True)
    class SquaresConfig(ActorConfig):
        name = "squares"
        scale: float = 2.0

        def make_encoder(self, in_features):
            return torch.nn.Linear(in_features, in_features)

    actor = build_actor("squares", 5, 2, scale=3.0, hidden=(4,))
    assert actor(torch.randn(3, 5)).shape == (3, 2)
    assert ActorConfig.from_dict(actor.config.to_dict()) == SquaresConfig(hidden=(4,), scale=3.0)
    register_actor(SquaresConfig)  # once more is fine

    class Other(ActorConfig):
        name = "mlp"

    with pytest.raises(ValueError, match="an actor called 'mlp' already"):
        register_actor(Other)


def test_interaction_alternatives_make_arms():
    actor = build_actor("prism", 6, 2, interaction="glu", latent=8, hidden=(4,))
    assert actor(torch.randn(3, 6)).shape == (3, 2)
    with pytest.raises(
        ValueError, match="gate_init applies only to interaction='gated' or 'scaled'"
    ):
        PrismActorConfig(interaction="glu", gate_init=0.5)


@pytest.mark.parametrize("interaction", GATED)
def test_options_of_gates_reach_the_layer(interaction):
    options = {"warmup": 9, "bound": 2.0, "gate_init": 0.3, "interaction": interaction}
    layer = build_actor("prism", 6, 2, **options).encoder.interaction
    assert type(layer) is INTERACTIONS[interaction]
    assert (layer.warmup.updates, layer.bound, layer.gate_init) == (9, 2.0, 0.3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: build_actor("prsm", 6, 2),
            ["actor 'prsm'", "mlp, prism, prism-after, prism-residual", "'prism'?"],
        ),
        (lambda: build_actor("mlp", 6, 2, degree=2), ["'degree'", "'mlp'", "hidden, activation"]),
        (lambda: build_actor("prism", 6, 2, degree=0), ["degree", "0"]),
        (
            lambda: ActorConfig.from_dict({"hidden": [3]}),
            ["actor ''", "mlp, prism, prism-after, prism-residual"],
        ),
        (lambda: build_actor("prism", 0, 2), ["in_features", "0"]),
        (lambda: build_actor("mlp", 6, 2, hidden=(8, 0)), ["hidden[1]", "0"]),
        (lambda: build_actor("mlp", 6, 2, activation="rleu"), ["'rleu'", "'relu'?"]),
        (lambda: build_actor("prism", 6, 2, latent=0), ["latent", "0"]),
        (lambda: build_actor("prism", 6, 2, interaction="nope"), ["interaction 'nope'", "ccp"]),
    ],
)
def test_bad_arguments_are_explained(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_config_and_options_together_are_refused():
    with pytest.raises(TypeError, match=r"replace\(config"):
        build_actor(ActorConfig(), 6, 2, hidden=(3,))


REFERENCES = [
    ("prism", 705, 12, {}),
    ("prism", 705, 12, {"degree": 3}),
    ("prism-residual", 705, 12, {}),
    ("prism-residual-gated", 705, 12, {}),
    ("prism-after", 705, 12, {}),
    ("prism", 705, 12, {"bypass": tuple(range(75))}),
    ("prism", 235, 12, {"latent": 64, "hidden": (256, 128, 64)}),
    ("prism", 10, 3, {"latent": 16, "hidden": (32, 16)}),
    ("prism", 24, 4, {"latent": 32, "hidden": (64,) * 6}),
]


@pytest.mark.parametrize("by", ["parameters", "flops"])
@pytest.mark.parametrize(("name", "inputs", "outputs", "options"), REFERENCES)
def test_matched_mlp_is_within_a_thousandth(name, inputs, outputs, options, by):
    reference = build_actor(name, inputs, outputs, **options)
    control = matched_mlp(reference, by=by)
    measure = count_parameters if by == "parameters" else lambda m: count_flops(m, inputs)
    assert abs(measure(control) / measure(reference) - 1) <= 1e-3
    assert control.config.name == "mlp"
    assert len(control.config.hidden) == len(reference.config.hidden)
    assert control(torch.randn(2, inputs)).shape == (2, outputs)
    ratios = [a / b for a, b in zip(control.config.hidden, reference.config.hidden, strict=True)]
    assert max(ratios) < (1.4 if inputs > 100 else 2.0) * min(ratios)


def test_matched_mlp_is_nearer_than_the_papers_control():
    prism = build_actor("prism", 705, 12)
    assert abs(count_parameters(matched_mlp(prism)) - 724_876) <= 724_932 - 724_876


def test_flops_count_the_matrix_products():
    actor = build_actor("prism", 10, 3, latent=4, hidden=(6,))
    expected = 2 * (10 * 8 + 4 * 4 + 4 * 6 + 6 * 3)
    assert count_flops(actor, 10) == expected
    assert actor.training


def test_matched_mlp_for_any_module():
    module = torch.nn.Bilinear(6, 6, 40)
    with pytest.raises(ValueError, match="in_features"):
        matched_mlp(module)
    control = matched_mlp(module, in_features=12, out_features=40, hidden=(2, 1))
    assert abs(count_parameters(control) / 1480 - 1) <= 1e-3
    with pytest.raises(ValueError, match=r"hidden=\(\.\.\.\)"):
        matched_mlp(module, in_features=12, out_features=40)
    with pytest.raises(ValueError, match="cost 'weights'"):
        matched_mlp(module, by="weights")


def test_matched_mlp_says_when_no_mlp_is_near_enough():
    tiny = build_actor("mlp", 100, 100, hidden=(1,))
    with pytest.raises(ValueError, match=r"within 0\.1 %.*nearest"):
        matched_mlp(torch.nn.Linear(100, 1), in_features=100, out_features=100, hidden=(4,))
    assert count_parameters(matched_mlp(tiny)) == count_parameters(tiny)
