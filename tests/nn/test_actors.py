import dataclasses
import json

import pytest
import torch

from prism_motor.nn import (
    ACTORS,
    ActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
    build_actor,
    count_flops,
    count_parameters,
    matched_mlp,
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


def test_config_is_frozen_and_survives_json():
    for config in (
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
    with pytest.raises(ValueError, match=r"gate_init applies only to interaction='gated'"):
        PrismActorConfig(interaction="glu", gate_init=0.5)


def test_warmup_and_bound_reach_the_layer():
    layer = build_actor("prism", 6, 2, warmup=9, bound=2.0, gate_init=0.3).encoder.interaction
    assert (layer.warmup.updates, layer.bound, layer.gate_init) == (9, 2.0, 0.3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: build_actor("prsm", 6, 2),
            ["actor 'prsm'", "mlp, prism, prism-residual", "'prism'?"],
        ),
        (lambda: build_actor("mlp", 6, 2, degree=2), ["'degree'", "'mlp'", "hidden, activation"]),
        (lambda: build_actor("prism", 6, 2, degree=0), ["degree", "0"]),
        (
            lambda: ActorConfig.from_dict({"hidden": [3]}),
            ["actor ''", "mlp, prism, prism-residual"],
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
