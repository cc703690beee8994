"""Walking on another device: the same numbers to the last bit, and one transfer each way per step.

The device is pretended (see :mod:`tests.devices`): it computes as the CPU does, but mixing its
tensors with those of the CPU is an error, as on a GPU.
"""

from collections import defaultdict
from dataclasses import replace

import pytest
import torch
from tensordict import TensorDict

from prism_motor._checks import InputError
from prism_motor.locomotion import trainer as training
from prism_motor.locomotion.evaluation import Protocol, evaluate
from prism_motor.locomotion.link import DeviceLink
from prism_motor.train import session
from prism_motor.train.finite import NonFiniteTrainingError
from tests.analysis.policies import small_policy
from tests.devices import AWAY
from tests.train.cases import make_walking

STEPS = 6


@pytest.fixture
def make_trainer(monkeypatch):
    def make(device, arm="prism", **changes):
        monkeypatch.setattr(training, "own_device", lambda *_: str(device))
        return training.WalkingTrainer(make_walking(arm, **changes))

    return make


def collect(trainer):
    with torch.inference_mode():
        trainer._collect(defaultdict(float))


@pytest.mark.parametrize("arm", ["mlp", "prism"])
def test_updates_are_those_of_the_cpu(make_trainer, away, arm):
    states = []
    for device in ("cpu", AWAY):
        trainer = make_trainer(device, arm)
        rows = [trainer.update() for _ in range(2)]
        states.append((trainer.state(), rows[1]["loss/value"], rows[1]["reward_per_second"]))
    assert next(trainer.ppo.actor.parameters()).device == AWAY
    assert trainer.ppo.storage.observations["policy"].device == AWAY
    (one, two) = states
    assert one[1:] == two[1:]
    assert one[0][0].keys() == two[0][0].keys()
    for name, values in one[0][0].items():
        assert two[0][0][name].device.type == "cpu", name
        assert torch.equal(two[0][0][name], values), name


def test_a_mirrored_update_works_there_too(make_trainer, away):
    ppo = replace(make_walking().ppo, mirror=True)
    rows = [make_trainer(device, "mlp", ppo=ppo).update() for device in ("cpu", AWAY)]
    assert rows[0]["loss/surrogate"] == rows[1]["loss/surrogate"]


def test_a_run_resumes_exactly(make_trainer, away):
    whole = make_trainer(AWAY)
    whole.update()
    kept = whole.state()
    whole.update()
    resumed = make_trainer(AWAY)
    torch.manual_seed(999)
    resumed.restore(*kept)
    resumed.update()
    one, two = whole.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_control_step_takes_one_transfer_each_way(make_trainer, away):
    trainer = make_trainer(AWAY)
    away.counts.clear()
    collect(trainer)
    # One more for what the first action is based on. Numbers are waited for only at the end: the
    # sums of returns and advantages. (On CUDA, torch also looks at the standard deviation when it
    # samples.)
    assert away.counts["to"] == STEPS + 1
    assert away.counts["from"] == STEPS
    assert away.counts["waits"] == 2


def test_a_constant_on_the_cpu_does_not_pass(make_trainer, away, monkeypatch):
    trainer = make_trainer(AWAY)
    encoder = trainer.ppo.actor.encoder
    forward = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda x: forward(x) * torch.ones(x.shape[0], 1))
    with pytest.raises(RuntimeError, match="on lazy:0 and on the CPU"):
        collect(trainer)


def test_an_action_that_is_not_finite_is_named_where_it_arrives(make_trainer, away):
    trainer = make_trainer(AWAY)
    with torch.no_grad():
        trainer.ppo.actor.mlp[-1].bias.fill_(float("nan"))
    with pytest.raises(NonFiniteTrainingError, match=r"the action is nan .* in step 1 of 6"):
        trainer.update()


def test_a_policy_acts_from_another_device(away):
    policy = small_policy("prism", duration=0.2)
    task, size = policy.config.task, Protocol(4, 1)
    expected = evaluate(policy, task, "nominal", seed=5, protocol=size)
    policy = policy.to(AWAY)
    assert policy.device == AWAY
    away.counts.clear()
    steps = []
    found = evaluate(policy, task, "nominal", seed=5, protocol=size, report=lambda: steps.append(1))
    assert found == expected
    assert away.counts == {"to": len(steps), "from": len(steps)}


def test_on_the_cpu_the_link_copies_nothing():
    link = DeviceLink("cpu")
    observations = TensorDict({"policy": torch.ones(2, 3)}, batch_size=[2])
    rewards = torch.ones(2)
    seen, (paid,) = link.send(observations, rewards)
    assert seen is observations
    assert paid is rewards
    assert link.fetch(rewards) is rewards


def test_the_link_keeps_what_it_sent_before(away):
    link, sent = DeviceLink(AWAY), []
    for number in range(3):
        observations = TensorDict({"policy": torch.full((2, 3), number)}, batch_size=[2])
        sent.append(link.send(observations, torch.tensor([number, 7])))
    for number, (seen, (dones,)) in enumerate(sent):
        assert seen["policy"].cpu().tolist() == [[number] * 3] * 2
        assert seen["policy"].is_contiguous()
        assert dones.cpu().tolist() == [number, 7]


def test_a_run_keeps_its_kind_of_device(tmp_path, monkeypatch):
    run, _ = session.start(make_walking(device="auto"), tmp_path / "run")
    run.close()
    assert run.config["device"] == "cpu"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match="trained on cpu and cannot be resumed on cuda"):
        session.resume(tmp_path / "run", device="cuda")
    run, trainer = session.resume(tmp_path / "run", device="cpu")
    run.close()
    assert trainer.device == "cpu"
