"""One update: exact resume, targets, levers against a runaway discriminator, errors by name."""

import copy

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.config import AnchorConfig, LearnerConfig, LearningSettings
from prism_motor.tracking.learning import losses
from prism_motor.tracking.observations import Layout
from prism_motor.train.finite import NonFiniteTrainingError
from tests.tracking.frames import TINY, change, make_learner

TINY = change(TINY, learner={"actor_delay": 0})
PLAIN = change(
    TINY,
    anchor={"weight": 0.0, "final": 0.0},
    discriminator={"every": 1},
    learner={"backward_rate": 1e-4, "statistics": 0.01},
)


def run(learner, replay, experts, updates):
    return [
        {name: value.item() for name, value in learner.learn(replay, experts).items()}
        for _ in range(updates)
    ]


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()]).clone()


def test_resume_repeats_an_uninterrupted_run_bit_for_bit():
    settings = change(TINY, discriminator={"normalise_reward": True})
    first, replay, experts = make_learner(settings)
    run(first, replay, experts, 3)
    tensors, plain = first.state()
    draws = replay.generator.get_state()
    rows = run(first, replay, experts, 3)
    second, other, _ = make_learner(settings, seed=77)
    second.restore(tensors, plain)
    other.generator.set_state(draws)
    assert run(second, other, experts, 3) == rows
    after, again = first.state(), second.state()
    assert after[1] == again[1]
    assert after[0].keys() == again[0].keys()
    for name, value in after[0].items():
        assert torch.equal(value, again[0][name]), name
    # Acting goes on alike, too.
    x, z = torch.randn(4, first.layout.size), torch.randn(4, 16)
    assert torch.equal(first.explore(x, z, 10**6), second.explore(x, z, 10**6))


def test_the_seed_decides():
    rows = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(rows))  # the global state does not matter
        rows.append(run(*make_learner(seed=seed), 2))
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_a_saved_state_does_not_change_with_the_learner():
    learner, replay, experts = make_learner()
    tensors, _ = learner.state()
    before = {name: value.clone() for name, value in tensors.items()}
    run(learner, replay, experts, 1)
    assert all(torch.equal(value, before[name]) for name, value in tensors.items())


def test_nothing_is_terminal_and_targets_follow_the_formula():
    # The reward is all but zero and the target critics say 5 everywhere, so every target is gamma
    # times 5, also in rows that end an episode elsewhere in the buffer.
    settings = change(PLAIN, discriminator={"reward_bound": 1e-6, "bounded_targets": False})
    learner, replay, experts = make_learner(settings)
    target, online = learner._target_values.heads[1], learner.values.heads[1]
    for head, value in ((target, 5.0), (online, 0.0)):
        head.weight.data.zero_()
        head.bias.data.fill_(value)
    (row,) = run(learner, replay, experts, 1)
    assert row["loss/imitation"] == pytest.approx((settings.learner.gamma * 5) ** 2, rel=1e-4)
    assert row["imitation/value"] == 0.0


def test_pessimism_takes_half_the_gap_off():
    settings = change(PLAIN, discriminator={"reward_bound": 1e-6, "bounded_targets": False})
    learner, replay, experts = make_learner(settings)
    target, online = learner._target_values.heads[1], learner.values.heads[1]
    target.weight.data.zero_()
    online.weight.data.zero_()
    target.bias.data.copy_(torch.tensor([2.0, 6.0]).view(2, 1, 1))
    (row,) = run(learner, replay, experts, 1)
    assert row["loss/imitation"] == pytest.approx((settings.learner.gamma * 2.0) ** 2, rel=1e-4)


def test_targets_move_by_their_shares():
    learner, replay, experts = make_learner(PLAIN)
    run(learner, replay, experts, 1)
    tau = (0.01, 0.005, 0.005)
    old = [[view.clone() for view in learner._target_values.split_parameters(i)] for i in range(3)]
    run(learner, replay, experts, 1)
    for i in range(3):
        new = learner._target_values.split_parameters(i)
        followed = learner.values.split_parameters(i)
        for before, after, source in zip(old[i], new, followed, strict=True):
            expected = before + tau[i] * (source.detach() - before)
            assert torch.allclose(after, expected, atol=1e-7)


def test_every_network_learns_and_experts_do_not_move_the_statistics():
    learner, replay, experts = make_learner(PLAIN)
    before = {name: weights(network) for name, network in learner.models().items()}
    backward = weights(learner.policy.backward_map)
    run(learner, replay, experts, 1)
    for name, network in learner.models().items():
        assert not torch.equal(weights(network), before[name])
    assert not torch.equal(weights(learner.policy.backward_map), backward)
    assert learner.policy.normaliser.batches.tolist() == [2, 2, 2, 2]
    # The buffer's numbers have mean zero, the clips' mean one.
    assert learner.policy.normaliser.mean.abs().max() < 0.02
    assert len(learner.ring) == PLAIN.learner.batch


def test_statistics_and_latents_can_stay_as_they_are():
    learner, replay, experts = make_learner(TINY)
    before = {k: v.clone() for k, v in learner.policy.state_dict().items()}
    run(learner, replay, experts, 2)
    same = {k for k, v in learner.policy.state_dict().items() if torch.equal(v, before[k])}
    assert same == {k for k in before if not k.startswith("actor.")}


def test_the_actors_step_computes_no_gradient_of_the_values():
    learner, replay, experts = make_learner(PLAIN)
    run(learner, replay, experts, 1)
    grads = [p.grad for p in learner.values.parameters()]
    before = copy.deepcopy(grads)
    values = weights(learner.values)
    batch = replay.sample(64)
    now = learner.policy.normaliser(batch["observation"])
    learner._step_actor(now, batch["latent"], torch.ones(64, dtype=torch.bool), {})
    assert all(torch.equal(one, other) for one, other in zip(grads, before, strict=True))
    assert all(p.grad is g for p, g in zip(learner.values.parameters(), grads, strict=True))
    assert torch.equal(weights(learner.values), values)


def test_the_actors_gradient_passes_the_clip():
    learner, _, _ = make_learner(PLAIN)
    mean = torch.tensor([[0.9999999, -2.0, 0.3]], requires_grad=True)
    action = learner._noisy(mean)
    assert action.abs().max() <= 1 - 1e-6
    (gradient,) = torch.autograd.grad(action.sum(), mean)
    assert gradient.tolist() == [[1.0, 1.0, 1.0]]
    many = learner._noisy(torch.zeros(20_000, 1))
    assert many.std().item() == pytest.approx(0.05, rel=0.03)


def test_exploring_is_uniform_first():
    learner, _, _ = make_learner(change(PLAIN, learner={"warmup_steps": 64}))
    x, z = torch.randn(2000, learner.layout.size), torch.randn(2000, 16)
    early = learner.explore(x, z, 0)
    assert early.shape == (2000, 29)
    assert early.std().item() == pytest.approx(2 / 12**0.5, rel=0.02)
    later = learner.explore(x, z, 64)
    noise = later - learner.policy(x, z)
    inner = later.abs() < 1
    assert noise[inner].std().item() == pytest.approx(0.05, rel=0.05)


# --- what holds the discriminator and its critic back ---


def test_the_discriminator_can_step_less_often():
    learner, replay, experts = make_learner(change(PLAIN, discriminator={"every": 3}))
    changed = []
    for _ in range(6):
        before = weights(learner.discriminator)
        rows = run(learner, replay, experts, 1)
        changed.append(not torch.equal(before, weights(learner.discriminator)))
        assert ("discriminator/entropy" in rows[0]) == changed[-1]
    assert changed == [True, False, False, True, False, False]


def test_a_slower_discriminator_separates_less():
    gaps = []
    for rate in (1e-3, 1e-5):
        learner, replay, experts = make_learner(
            change(PLAIN, discriminator={"learning_rate": rate})
        )
        last = run(learner, replay, experts, 15)[-1]
        gaps.append(last["discriminator/expert"] - last["discriminator/policy"])
    assert gaps[0] > 2 * gaps[1]


def test_a_larger_gradient_penalty_keeps_the_slope_near_one():
    found = []
    for weight in (0.0, 100.0):
        settings = change(PLAIN, discriminator={"gradient_penalty": weight, "learning_rate": 3e-3})
        found.append(run(*make_learner(settings), 40)[-1]["discriminator/penalty"])
    assert found[1] < 0.5 * found[0]


def test_rewards_are_bounded_and_targets_with_them():
    settings = change(PLAIN, discriminator={"reward_bound": 0.5, "bounded_targets": True})
    learner, replay, experts = make_learner(settings)
    learner.discriminator.layers[-1].bias.data.fill_(-100.0)
    target, online = learner._target_values.heads[1], learner.values.heads[1]
    for head, value in ((target, -1e6), (online, 0.0)):
        head.weight.data.zero_()
        head.bias.data.fill_(value)
    (row,) = run(learner, replay, experts, 1)
    assert row["imitation/reward"] == pytest.approx(-0.5)
    largest = 0.5 / (1 - settings.learner.gamma)
    assert row["loss/imitation"] == pytest.approx(largest**2, rel=1e-4)


def test_rewards_can_be_divided_by_their_deviation():
    losses = []
    for scale in (1.0, 100.0):
        settings = change(
            PLAIN,
            discriminator={"normalise_reward": True, "reward_bound": 16.0, "learning_rate": 1e-8},
        )
        learner, replay, experts = make_learner(settings)
        learner.discriminator.layers[-1].weight.data.mul_(0.01 * scale)
        losses.append(run(learner, replay, experts, 1)[0]["loss/imitation"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_a_softplus_reward_is_never_negative():
    learner, replay, experts = make_learner(change(PLAIN, discriminator={"reward": "softplus"}))
    learner.discriminator.layers[-1].bias.data.fill_(-2.0)
    assert run(learner, replay, experts, 1)[0]["imitation/reward"] > 0


def test_the_anchor_holds_the_actor_under_latents_of_clips_alone():
    free, held = (
        change(TINY, anchor={"weight": weight, "final": weight}) for weight in (0.0, 1000.0)
    )
    moved = []
    for settings in (free, held):
        learner, replay, experts = make_learner(settings)
        learner.drop_anchor()
        start = copy.deepcopy(learner.policy.actor)
        run(learner, replay, experts, 30)
        batch = experts.sample(64, learner.generator)
        seen = learner.policy.normaliser(batch.observation)
        latents = learner.policy.encode(batch.next_observation)
        with torch.no_grad():
            apart = learner.policy.actor(seen, latents) - start(seen, latents)
        moved.append(apart.square().sum(-1).mean().item())
    assert moved[1] < 0.3 * moved[0]
    # Rows that do not count change nothing.
    actions, wanted = torch.randn(4, 3), torch.randn(4, 3)
    counted = torch.tensor([True, False, True, False])
    expected = (actions - wanted)[[0, 2]].square().sum() / 2
    assert losses.anchor_loss(actions, wanted, counted).item() == pytest.approx(expected.item())
    assert losses.anchor_loss(actions, wanted, counted & False).item() == 0.0


def test_the_anchor_fades():
    schedule = AnchorConfig(weight=1.0, hold=10, fade=20, final=0.2)
    found = [schedule.weight_at(step) for step in (0, 10, 20, 30, 99)]
    assert found == pytest.approx([1.0, 1.0, 0.6, 0.2, 0.2])
    assert "actor/anchor" not in run(*make_learner(PLAIN), 1)[0]
    with pytest.raises(InputError, match=r"warm_start\.updates is 0"):
        LearningSettings(anchor=AnchorConfig(weight=1.0))


def test_a_saved_anchor_is_restored():
    learner, replay, experts = make_learner()
    learner.drop_anchor()
    run(learner, replay, experts, 2)
    other, _, _ = make_learner(seed=9)
    other.restore(*learner.state())
    for name, value in learner._anchor.state_dict().items():
        assert torch.equal(value, other._anchor.state_dict()[name])


def test_the_actor_waits_for_its_turn():
    learner, replay, experts = make_learner(change(PLAIN, learner={"actor_delay": 2}))
    before = weights(learner.policy.actor)
    run(learner, replay, experts, 2)
    assert torch.equal(weights(learner.policy.actor), before)
    run(learner, replay, experts, 1)
    assert not torch.equal(weights(learner.policy.actor), before)


def test_gradient_steps_may_be_a_fraction():
    for ratio, expected in ((1.0, [1, 1, 1, 1]), (0.5, [0, 1, 0, 1]), (2.5, [2, 3, 2, 3])):
        config = LearnerConfig(gradient_steps=ratio)
        assert [config.steps_due(sweep) for sweep in range(1, 5)] == expected


def test_without_its_weight_the_auxiliary_critic_is_left_out():
    learner, replay, experts = make_learner(change(PLAIN, learner={"auxiliary_weight": 0.0}))
    (row,) = run(learner, replay, experts, 1)
    assert len(learner.values.heads) == 2
    assert not any("auxiliary" in name for name in row)


def test_auxiliary_terms_are_weighted_in_order():
    learner, replay, experts = make_learner(PLAIN)
    batch = replay.sample(64)
    terms = torch.zeros(64, 6)
    terms[:, 3] = 2.0  # the joint limit
    row = learner.update({**batch, "auxiliary": terms}, experts.sample(64, learner.generator))
    assert row["auxiliary/reward"].item() == pytest.approx(-20.0)


# --- numbers ---


def test_half_precision_learns_nearly_the_same():
    rows = []
    for precision in ("fp32", "bf16"):
        rows += run(*make_learner(PLAIN, precision=precision), 1)
    for name in ("loss/forward_backward", "loss/imitation", "discriminator/entropy"):
        assert rows[0][name] == pytest.approx(rows[1][name], rel=0.1, abs=0.05)
    assert rows[0] != rows[1]


@pytest.mark.parametrize(
    ("field", "part"), [("observation", "discriminator"), ("action", "forward_backward")]
)
def test_a_nan_is_named_where_it_arises(field, part):
    learner, replay, experts = make_learner(PLAIN)
    batch = replay.sample(64)
    batch[field][3, 5] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match=f"the loss '{part}' is nan"):
        learner.update(batch, experts.sample(64, learner.generator))


def test_a_broken_weight_is_never_saved():
    learner, _, _ = make_learner(PLAIN)
    learner.policy.actor.head.bias.data[2] = float("inf")
    with pytest.raises(NonFiniteTrainingError, match=r"policy\.actor\.head\.bias"):
        learner.state()


def test_a_gradient_that_overflows_is_named():
    learner, replay, experts = make_learner(PLAIN)
    network = learner.policy.actor
    network.head.weight.register_hook(lambda g: g * float("inf"))
    with pytest.raises(NonFiniteTrainingError, match=r"gradient 'policy\.actor\.head\.weight'"):
        run(learner, replay, experts, 1)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"multiple of latents\.window"):
        LearningSettings(learner=LearnerConfig(batch=100))
    with pytest.raises(InputError, match=r"learner\.gamma"):
        LearnerConfig(gamma=1.0)


@pytest.mark.parametrize("kind", ["none", "prism", "mlp"])
@pytest.mark.parametrize("blocks", ["simple", "residual"])
def test_all_kinds_of_networks_learn(kind, blocks):
    settings = change(
        PLAIN,
        networks={"filter": kind, "blocks": blocks, "critic_history": True, "critic_embedding": 3},
    )
    learner, replay, experts = make_learner(settings)
    assert learner.layout == Layout(compact=True, steps=2)
    filters = [p for n, p in learner.policy.actor.named_parameters() if ".filter." in n]
    before = [p.detach().clone() for p in filters]
    run(learner, replay, experts, 2)
    assert bool(filters) == (kind != "none")
    assert all(not torch.equal(p, old) for p, old in zip(filters, before, strict=True))
