"""NaN and infinity put into every place of an update: named, dumped and replayed."""

import re
import shutil

import pytest
import torch

from prism_motor.cli import main
from prism_motor.runs import CheckpointError
from prism_motor.train import session
from prism_motor.train.finite import NonFiniteTrainingError
from tests.faults.sizes import ALL
from tests.train.cases import CASES

NAN, INF = float("nan"), float("inf")


def bad_gradient(weight):
    """Return a zero whose gradient is NaN."""
    return (0 * (weight - weight.detach())).sqrt().sum()


@torch.no_grad()
def spoil(tensor, value=NAN):
    tensor.view(-1)[0] = value


def wrap(patch, owner, name, change):
    """Let ``change`` see and replace what a method returns."""
    method = getattr(owner, name)
    patch.setattr(owner, name, lambda self, *args: change(self, method(self, *args)))


def overflow(optimizer):
    """Let the next step be larger than any number, though all that it is made of is finite."""
    spoil(next(iter(optimizer.state.values()))["exp_avg"], 1e10)
    for group in optimizer.param_groups:
        group["lr"] = 1e35


def walk_observation(trainer, patch):
    trainer.env.engine.qvel[5, 7] = NAN


def walk_reward(trainer, patch):
    def change(_env, stepped):
        spoil(stepped[1], INF)
        return stepped

    wrap(patch, type(trainer.env), "step", change)


def walk_mean(trainer, patch):
    spoil(trainer.ppo.actor.mlp[0].weight)


def walk_deviation(trainer, patch):
    spoil(trainer.ppo.actor.distribution.std_param)


def walk_normaliser(trainer, patch):
    spoil(trainer.ppo.actor.obs_normalizer._std)


def walk_value(trainer, patch):
    spoil(trainer.ppo.critic.mlp[-1].bias, INF)


def walk_returns(name, value):
    """Spoil what compute_returns leaves in the storage."""

    def place(trainer, patch):
        wrap(
            patch,
            type(trainer.ppo),
            "compute_returns",
            lambda ppo, _: spoil(getattr(ppo.storage, name), value),
        )

    return place


def walk_gradient(trainer, patch):
    wrap(
        patch,
        type(trainer.ppo.actor.distribution),
        "log_prob",
        lambda one, found: found + bad_gradient(one.std_param),
    )


def walk_rate(trainer, patch):
    def change(one, _):
        for group in one.ppo.optimizer.param_groups:
            group["lr"] = one.ppo.learning_rate = 1e39

    wrap(patch, type(trainer), "_schedule", change)


def walk_step(trainer, patch):
    def change(one, _):
        overflow(one.ppo.optimizer)
        one.ppo.learning_rate = one.ppo.optimizer.param_groups[0]["lr"]

    wrap(patch, type(trainer), "_schedule", change)


def walk_moment(trainer, patch):
    spoil(next(iter(trainer.ppo.optimizer.state.values()))["exp_avg_sq"], INF)


def walk_metric(trainer, patch):
    wrap(
        patch,
        type(trainer.env),
        "measure",
        lambda _env, found: {name: values * NAN for name, values in found.items()},
    )


def learn_weight(trainer, patch):
    spoil(next(trainer.policy.parameters()))


def learn_loss(trainer, patch):
    wrap(patch, type(trainer), "loss", lambda _, loss: loss * INF)


def learn_gradient(trainer, patch):
    def change(one, loss):
        return loss + bad_gradient([*one.policy.parameters()][1])

    wrap(patch, type(trainer), "loss", change)


def learn_norm(trainer, patch):
    wrap(patch, type(trainer), "loss", lambda _, loss: loss * 1e30)


def learn_rate(trainer, patch):
    trainer.optimizer.param_groups[-1]["lr"] = 1e39


def learn_step(trainer, patch):
    overflow(trainer.optimizer)


def learn_moment(trainer, patch):
    spoil(next(iter(trainer.optimizer.state.values()))["exp_avg_sq"], INF)


def learn_input(trainer, patch):
    def change(_windows, batch):
        spoil(batch["observation.state"])
        return batch

    wrap(patch, type(trainer.windows), "batch", change)


LEARNING = {
    "weight": (learn_weight, r"the loss is nan, because weight 'policy\.\S+' is nan"),
    "loss": (learn_loss, r"the loss is inf"),
    "gradient": (learn_gradient, r"gradient 'policy\.\S+' is nan"),
    "norm": (learn_norm, r"the norm of the gradient is inf"),
    "rate": (learn_rate, r"the learning rate is 1e\+39"),
    "step": (learn_step, r"weight 'policy\.\S+' is"),
    "moment": (learn_moment, r"optimiser state 'parameter 0, exp_avg_sq' is inf"),
}
PLACES = {
    "locomotion": {
        "observation": (walk_observation, "observation 'policy' of environment 5, entry"),
        "reward": (walk_reward, "reward of environment 0 is inf in step 1 of 6"),
        "mean": (walk_mean, r"the action's mean is nan .*in step 1 .*'actor\.mlp\.0\.weight' is"),
        "deviation": (
            walk_deviation,
            r"the action's standard deviation is nan .*std_param' is nan",
        ),
        "normaliser": (walk_normaliser, r"because weight 'actor\.obs_normalizer\._std' is nan"),
        "value": (
            walk_value,
            r"the critic's value is inf .*because weight 'critic\.mlp\.\d\.bias'",
        ),
        "return": (walk_returns("returns", NAN), "the return is nan .* after the last step"),
        "advantage": (walk_returns("advantages", INF), "the advantage is inf"),
        "loss": (walk_returns("returns", 1e30), "loss 'value' is inf"),
        "gradient": (
            walk_gradient,
            r"gradient 'actor\.distribution\.std_param' is nan .* in minibatch 1 of 2",
        ),
        "rate": (walk_rate, r"the learning rate is 1e\+39 in minibatch 1 of 2"),
        "step": (walk_step, r"weight '(actor|critic)\.\S+' is .* in minibatch 1 of 2"),
        "moment": (walk_moment, "optimiser state 'parameter 0, exp_avg_sq' is inf"),
        "metric": (walk_metric, "metric '[a-z_]+' is nan"),
    },
    "manipulation": {
        "input": (learn_input, "the input 'observation.state' is nan"),
        **LEARNING,
    },
    "power": LEARNING,
}


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Return a function that copies a run after two updates and resumes it."""
    made = {}
    patches = []

    def start(kind, path):
        if kind not in made:
            patches.append(CASES[kind].setup())
            made[kind] = tmp_path_factory.mktemp(kind) / "run"
            run, trainer = session.start(CASES[kind].make(), made[kind])
            session.train(run, trainer, 2)
        shutil.copytree(made[kind], path)
        return session.resume(path)

    yield start
    for patch in patches:
        patch.undo()


@pytest.mark.parametrize(
    ("kind", "place"), [(kind, place) for kind, places in PLACES.items() for place in places]
)
def test_it_is_named_dumped_and_replayed(kind, place, started, tmp_path, monkeypatch):
    run, trainer = started(kind, tmp_path / "run")
    inject, said = PLACES[kind][place]
    before = {name: model.state_dict() for name, model in trainer.models().items()}
    before = {name: {k: v.clone() for k, v in state.items()} for name, state in before.items()}
    inject(trainer, monkeypatch)
    with pytest.raises(NonFiniteTrainingError, match=f"Update 3 stopped: .*{said}") as first:
        session.train(run, trainer)
    assert trainer.updates == 2
    assert run.steps() == [0, 2]
    dump = tmp_path / "run" / "nonfinite" / "00000002"
    assert f"prism replay {dump}" in str(first.value)
    with pytest.raises(NonFiniteTrainingError, match=said) as again:
        session.replay(dump)
    assert str(again.value) in str(first.value)
    # What the replay starts from are the weights from before, except for what was spoilt.
    tensors = session.load_checkpoint(dump).tensors
    for title, state in before.items():
        changed = [k for k, v in state.items() if not torch.equal(v, tensors[f"{title}.{k}"])]
        assert len(changed) <= 1, changed


@pytest.mark.parametrize("kind", PLACES)
def test_without_room_for_the_dump_the_cause_is_still_named(kind, started, tmp_path, monkeypatch):
    run, trainer = started(kind, tmp_path / "run")
    CASES[kind].poison(trainer)

    def full(*_):
        raise CheckpointError("Could not save: No space left on device.")

    monkeypatch.setattr(session, "save_checkpoint", full)
    with pytest.raises(
        NonFiniteTrainingError, match=f"Update 3 stopped: .*{CASES[kind].culprit}"
    ) as e:
        session.train(run, trainer)
    assert "could not be written: Could not save: No space left on device; the last" in str(e.value)


SAID = {
    "locomotion": "After 0 steps the action of environment 0 is not finite",
    "manipulation": r"In step 1 of reach-v3 the action is \[nan",
    "power": r"The error of episode \(0,\) of nominal, seed 101, is nan",
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_policy_without_finite_weights_is_not_evaluated(kind, started, tmp_path, capsys):
    run, trainer = started(kind, tmp_path / "run")
    for model in trainer.models().values():
        for weight in model.parameters():
            spoil(weight)
    run.save(3, *trainer.state())
    for words in ([], *([["--workers", "1"]] if kind == "manipulation" and ALL else [])):
        with pytest.raises(SystemExit) as stopped:
            main(["eval", str(run.path), "--episodes", "1", *words])
        assert stopped.value.code == 2
        said = capsys.readouterr().err
        assert re.search(f"prism: error: {SAID[kind]}", said), said
        assert "Traceback" not in said
    assert not list(run.path.glob("evaluations/*.json"))
