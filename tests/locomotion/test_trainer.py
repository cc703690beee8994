from dataclasses import replace

import pytest
import torch
from rsl_rl.extensions import Symmetry

from prism_motor.locomotion.mirror import augment
from prism_motor.locomotion.presets import ARMS, PRESETS, make_config
from prism_motor.locomotion.trainer import Trainer
from prism_motor.nn import build_actor, count_parameters
from prism_motor.train.finite import NonFiniteTrainingError, check_update
from prism_motor.train.guard import check_step


def small(arm="gated", **changes):
    config = make_config("laptop", arm, seed=3)
    ppo = replace(config.ppo, steps=8, epochs=2, minibatches=2)
    return replace(config, ppo=ppo, envs=16, **changes)


def weights(trainer):
    return {k: v for k, v in trainer.state()[0].items() if k.startswith(("actor", "critic"))}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("cut", [1, 2])
def test_resume_is_bit_identical(arm, cut):
    config = small(arm)
    whole = Trainer(config)
    for i in range(4):
        whole.iterate()
        if i + 1 == cut:
            tensors, plain = whole.state()
    resumed = Trainer(config)
    torch.manual_seed(999)  # whatever happened in between
    resumed.restore(tensors, plain)
    for _ in range(4 - cut):
        resumed.iterate()
    assert resumed.iteration == whole.iteration == 4
    assert same(weights(resumed), weights(whole))
    one, two = whole.state()[0], resumed.state()[0]
    assert same(one, two)


def test_resume_keeps_the_adaptive_learning_rate_and_the_warmup():
    config = small("residual")
    config = replace(config, ppo=replace(config.ppo, schedule="adaptive", learning_rate=1e-3))
    whole = Trainer(config)
    whole.iterate()
    tensors, plain = whole.state()
    whole.iterate()
    resumed = Trainer(config)
    resumed.restore(tensors, plain)
    assert resumed.ppo.learning_rate == plain["learning_rate"] != 1e-3
    assert tensors["actor.encoder.warmup.count"].item() == 1
    resumed.iterate()
    assert same(weights(resumed), weights(whole))


def test_seeds_decide_the_run():
    def run(seed):
        trainer = Trainer(replace(small("mlp"), seed=seed))
        trainer.iterate()
        return weights(trainer)

    assert same(run(1), run(1))
    assert not same(run(1), run(2))


def test_mirrored_training_runs_and_resumes():
    config = small("gated")
    config = replace(config, ppo=replace(config.ppo, mirror=True))
    whole = Trainer(config)
    whole.iterate()
    tensors, plain = whole.state()
    whole.iterate()
    resumed = Trainer(config)
    resumed.restore(tensors, plain)
    resumed.iterate()
    assert same(weights(resumed), weights(whole))


def test_mirroring_learns_what_rsl_rls_own_extension_learns():
    config = small("gated")
    ours = Trainer(config)
    ours.iterate()
    theirs = Trainer(config)
    theirs.ppo.symmetry = Symmetry(theirs.env, augment, use_data_augmentation=True)
    theirs.iterate()
    assert same(weights(ours), weights(theirs))
    plain = Trainer(replace(config, ppo=replace(config.ppo, mirror=False)))
    plain.iterate()
    assert not same(weights(ours), weights(plain))


def test_metrics_are_complete_and_finite():
    trainer = Trainer(small("mlp"))
    row = trainer.iterate()
    assert row["iteration"] == 1
    assert row["samples"] == 16 * 8
    assert all(torch.isfinite(torch.tensor(float(value))) for value in row.values())
    shares = sum(value for name, value in row.items() if name.startswith("time/"))
    assert 0.5 < shares <= 1.01


def test_linear_schedule():
    config = small("mlp")
    ppo = replace(config.ppo, learning_rate=1e-3, final_learning_rate=2e-4, decay_samples=512)
    trainer = Trainer(replace(config, ppo=ppo))
    rates = [trainer.iterate()["learning_rate"] for _ in range(5)]
    assert rates == pytest.approx([1e-3, 7.5e-4, 5e-4, 2.5e-4, 2e-4])


def test_another_actor_is_refused():
    tensors, plain = Trainer(small("gated")).state()
    with pytest.raises(RuntimeError, match="encoder"):
        Trainer(small("mlp")).restore(tensors, plain)


def test_matched_arm_has_the_size_of_the_gated_one():
    for preset in PRESETS:
        gated, control = (make_config(preset, arm) for arm in ("gated", "mlp-larger"))
        inputs = gated.task.observations.actor_frames * 47
        sizes = [count_parameters(build_actor(c.actor, inputs, 12)) for c in (gated, control)]
        assert abs(sizes[1] / sizes[0] - 1) <= 1e-3
    assert sizes != [0, 0]
    paper = make_config("paper", "gated", degree=3)
    assert count_parameters(build_actor(paper.actor, 705, 12)) == 905_868


def test_environments_must_be_shared_evenly():
    with pytest.raises(ValueError, match="16 environments cannot be shared evenly by 3"):
        Trainer(small("mlp"), rank=0, world_size=3)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="preset 'labtop'"):
        make_config("labtop", "gated")
    with pytest.raises(ValueError, match="actor 'gatd'"):
        make_config("laptop", "gatd")


def test_guard_names_the_culprit():
    good = torch.zeros(4, 3)
    bad = good.clone()
    bad[2, 1] = float("nan")
    check_step([("policy", good)], good[:, 0])
    with pytest.raises(NonFiniteTrainingError, match="'critic' of environment 2, entry 1"):
        check_step([("policy", good), ("critic", bad)], good[:, 0])
    with pytest.raises(NonFiniteTrainingError, match="reward of environment 1"):
        check_step([("policy", good)], torch.tensor([0.0, float("inf")]))
    model = torch.nn.Linear(2, 2)
    with pytest.raises(NonFiniteTrainingError, match="loss 'value' is nan"):
        check_update({"value": float("nan")}, [("actor", model)])
    model.weight.grad = torch.full((2, 2), float("inf"))
    with pytest.raises(NonFiniteTrainingError, match=r"gradient of 'actor\.weight' has 4 of 4"):
        check_update({"value": 0.0}, [("actor", model)])
    model.weight.grad = None
    with torch.no_grad():
        model.bias[0] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match=r"weight of 'actor\.bias' has 1 of 2"):
        check_update({"value": 0.0}, [("actor", model)])


def test_a_non_finite_simulation_stops_training():
    trainer = Trainer(small("mlp"))
    trainer.env.engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match="environment 5"):
        trainer.iterate()
