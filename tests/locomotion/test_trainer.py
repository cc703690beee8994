from dataclasses import replace

import pytest
import torch
from rsl_rl.extensions import Symmetry

from prism_motor.locomotion.mirror import augment
from prism_motor.locomotion.ppo import make_actor
from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.trainer import WalkingTrainer
from prism_motor.train.distributed import Rank
from prism_motor.train.finite import NonFiniteTrainingError


def small(arm="prism", preset="laptop", bypass=(), **changes):
    overrides = {"actor.bypass": list(bypass)} if bypass else {}
    config = make_config(preset, arm, seed=3, overrides=overrides)
    ppo = replace(config.ppo, steps=8, epochs=2, minibatches=2)
    return replace(config, ppo=ppo, envs=16, **changes)


def weights(trainer):
    return {k: v for k, v in trainer.state()[0].items() if k.startswith(("actor", "critic"))}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


@pytest.mark.parametrize(
    "arm",
    [
        "mlp",
        "mlp-large",
        "prism",
        "prism-residual",
        "prism-residual-gated",
        "prism-after",
        "bypass",
    ],
)
@pytest.mark.parametrize("cut", [1, 2])
def test_resume_is_bit_identical(arm, cut):
    config = small("prism", bypass=("clock",)) if arm == "bypass" else small(arm)
    whole = WalkingTrainer(config)
    for i in range(4):
        whole.update()
        if i + 1 == cut:
            tensors, plain = whole.state()
    resumed = WalkingTrainer(config)
    torch.manual_seed(999)  # whatever happened in between
    resumed.restore(tensors, plain)
    for _ in range(4 - cut):
        resumed.update()
    assert resumed.updates == whole.updates == 4
    assert same(weights(resumed), weights(whole))
    one, two = whole.state()[0], resumed.state()[0]
    assert same(one, two)


def test_resume_keeps_the_adaptive_learning_rate_and_the_warmup():
    config = small("prism-residual")
    config = replace(config, ppo=replace(config.ppo, schedule="adaptive", learning_rate=1e-3))
    whole = WalkingTrainer(config)
    whole.update()
    tensors, plain = whole.state()
    whole.update()
    resumed = WalkingTrainer(config)
    resumed.restore(tensors, plain)
    assert resumed.ppo.learning_rate == plain["learning_rate"] != 1e-3
    assert tensors["actor.encoder.warmup.count"].item() == 1
    resumed.update()
    assert same(weights(resumed), weights(whole))


def test_gradients_are_clipped_together_as_in_the_original():
    config = small("mlp", preset="paper")
    norms = []

    def measure(optimizer, *_):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        norms.append(torch.stack([p.grad.norm() for p in parameters]).norm().item())

    for together in (True, False):
        norms.clear()
        ppo = replace(config.ppo, clip_together=together, gradient_norm=0.01)
        trainer = WalkingTrainer(replace(config, ppo=ppo))
        trainer.ppo.optimizer.register_step_pre_hook(measure)
        trainer.update()
        limit = 0.01 if together else 0.01 * 2**0.5  # each of two networks reaches it
        assert norms == pytest.approx([limit] * len(norms), rel=1e-3)


def test_the_divergence_has_the_originals_offset():
    """KL = sum log(s_new / s_old + 1e-5) + (s_old^2 + (m_old - m_new)^2) / (2 s_new^2) - 1/2."""
    actor = make_actor(make_config("paper", "mlp"))
    old, new = (
        (torch.randn(5, 12, dtype=torch.double), 0.5 + torch.rand(5, 12, dtype=torch.double))
        for _ in range(2)
    )
    square = old[1].square() + (old[0] - new[0]).square()
    terms = torch.log(new[1] / old[1] + 1e-5) + square / (2 * new[1].square()) - 0.5
    torch.testing.assert_close(actor.get_kl_divergence(old, new), terms.sum(-1))
    assert (actor.get_kl_divergence(old, old) > 0).all()
    exact = make_actor(make_config("g1", "mlp"))
    assert not exact.get_kl_divergence(old, old).any()


def test_seeds_decide_the_run():
    def run(seed):
        trainer = WalkingTrainer(replace(small("mlp"), seed=seed))
        trainer.update()
        return weights(trainer)

    assert same(run(1), run(1))
    assert not same(run(1), run(2))


def test_mirrored_training_runs_and_resumes():
    config = small("prism")
    config = replace(config, ppo=replace(config.ppo, mirror=True))
    whole = WalkingTrainer(config)
    whole.update()
    tensors, plain = whole.state()
    whole.update()
    resumed = WalkingTrainer(config)
    resumed.restore(tensors, plain)
    resumed.update()
    assert same(weights(resumed), weights(whole))


def test_mirroring_learns_what_rsl_rls_own_extension_learns():
    config = small("prism")
    ours = WalkingTrainer(config)
    ours.update()
    theirs = WalkingTrainer(config)
    theirs.ppo.symmetry = Symmetry(theirs.env, augment, use_data_augmentation=True)
    theirs.update()
    assert same(weights(ours), weights(theirs))
    plain = WalkingTrainer(replace(config, ppo=replace(config.ppo, mirror=False)))
    plain.update()
    assert not same(weights(ours), weights(plain))


def test_metrics_are_complete_and_finite():
    trainer = WalkingTrainer(small("mlp"))
    row = trainer.update()
    assert row["update"] == 1
    assert row["samples"] == 16 * 8
    assert all(torch.isfinite(torch.tensor(float(value))) for value in row.values())
    shares = sum(value for name, value in row.items() if name.startswith("time/"))
    assert 0.5 < shares <= 1.01


def test_linear_schedule():
    config = small("mlp")
    ppo = replace(config.ppo, learning_rate=1e-3, final_learning_rate=2e-4, decay_samples=512)
    trainer = WalkingTrainer(replace(config, ppo=ppo))
    rates = [trainer.update()["learning_rate"] for _ in range(5)]
    assert rates == pytest.approx([1e-3, 7.5e-4, 5e-4, 2.5e-4, 2e-4])


def test_another_actor_is_refused():
    tensors, plain = WalkingTrainer(small("prism")).state()
    with pytest.raises(RuntimeError, match="encoder"):
        WalkingTrainer(small("mlp")).restore(tensors, plain)


def test_environments_must_be_shared_evenly():
    with pytest.raises(ValueError, match="16 environments cannot be shared evenly by 3"):
        WalkingTrainer(small("mlp"), Rank(0, 3))


def test_a_non_finite_simulation_stops_training():
    trainer = WalkingTrainer(small("mlp"))
    trainer.env.engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match="environment 5"):
        trainer.update()


def test_one_line_says_how_training_does():
    trainer = WalkingTrainer(small("mlp"))
    line = trainer.describe(trainer.update())
    assert line.startswith("falls every ")
    assert "samples/s (physics " in line
