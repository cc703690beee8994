"""Names of devices, what this machine has of them, and the device that the tests pretend."""

from dataclasses import fields

import pytest
import torch
from torch import nn

from prism_motor import _devices
from prism_motor._checks import InputError
from prism_motor._devices import (
    choose_device,
    keep_random_state,
    own_device,
    random_state,
    resolve_device,
    set_random_state,
)
from prism_motor.analysis.study import STUDIES, find_studies
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.train.config import EvaluationConfig, RunConfig
from tests.devices import AWAY


@pytest.fixture
def machine(monkeypatch):
    """Give this machine other devices."""

    def equip(cuda=0, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"GPU {index}")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return equip


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "CUDA", "cuda:0:1", "", "cuda:1234"])
def test_other_names_are_refused(name):
    for kind in (RunConfig, EvaluationConfig):
        given = {"kind": "x", "preset": "x", "arm": "x"} if kind is RunConfig else {}
        with pytest.raises(InputError, match="device must be cpu, cuda, cuda:1, mps or auto, got"):
            kind(**given, device=name)


def test_auto_is_the_best_device_that_there_is(machine):
    machine()
    assert resolve_device("auto") == "cpu"
    machine(mps=True)
    assert resolve_device("auto") == "mps"
    machine(cuda=1, mps=True)
    assert resolve_device("auto") == "cuda"


def test_a_missing_device_is_named_with_those_that_there_are(machine):
    machine(cuda=2)
    assert [resolve_device(name) for name in ("cpu", "cuda", "cuda:1")] == ["cpu", "cuda", "cuda:1"]
    with pytest.raises(InputError, match=r"cuda:2 cannot be used .* has cpu, cuda:0, cuda:1\."):
        resolve_device("cuda:2")
    machine()
    for name in ("cuda", "mps"):
        with pytest.raises(InputError, match=f"{name} cannot be used .* has cpu"):
            resolve_device(name)


def test_a_policy_is_used_where_it_was_trained_or_else_on_the_cpu(machine, capsys):
    machine(cuda=1)
    assert choose_device(None, "cuda") == "cuda"
    assert choose_device("cpu", "cuda") == "cpu"
    machine()
    assert choose_device(None, "cuda:1") == "cpu"
    assert "trained on cuda:1, which is missing here: the CPU is used" in capsys.readouterr().err
    with pytest.raises(InputError, match="cuda cannot be used"):
        choose_device("cuda", "cpu")


def test_every_process_has_its_own_device(machine):
    machine(cuda=2)
    assert [own_device("cuda", local, 2) for local in (0, 1)] == ["cuda:0", "cuda:1"]
    assert own_device("cuda:1") == "cuda:1"
    assert own_device("cpu", 1, 2) == "cpu"
    with pytest.raises(InputError, match="cuda:1 is a single device, but 2 processes need one"):
        own_device("cuda:1", 0, 2)
    with pytest.raises(InputError, match="cuda:2 cannot be used"):
        own_device("cuda", 2, 3)
    with pytest.raises(InputError, match="single process"):
        own_device("mps", 0, 2)


def test_random_numbers_continue_from_their_state():
    state = random_state("cpu")
    first = torch.rand(3)
    with keep_random_state("cpu"):
        torch.rand(7)
    second = torch.rand(3)
    set_random_state(state, "cpu")
    assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.rand(3), second)


def test_random_numbers_of_the_device_belong_to_the_state(monkeypatch):
    kept = {}
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.tensor([device.index]))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda s, d: kept.update({d: s}))
    state = random_state("cuda:1")
    assert {*state} <= {*_devices.RANDOM_TENSORS}
    set_random_state(state, "cuda:1")
    assert kept == {torch.device("cuda:1"): state["cuda_rng"]}


@pytest.mark.parametrize("command", ["play", "video", *STUDIES])
def test_every_command_that_uses_a_policy_has_the_flag(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--device" in capsys.readouterr().out


def test_every_training_evaluation_and_study_has_the_setting():
    kinds = [kind for name in DOMAINS for kind in (DOMAINS[name].config, DOMAINS[name].evaluation)]
    kinds += [study.config for name in STUDIES for study in find_studies(name)]
    for kind in kinds:
        assert "device" in {field.name for field in fields(kind)}, kind


# The pretended device ----------------------------------------------------------------------------


def test_the_pretended_device_computes_as_the_cpu_does(away):
    torch.manual_seed(1)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 1)), torch.randn(5, 4)

    def learn(x):
        model(x).square().mean().backward()
        return [p.grad.cpu() for p in model.parameters()]

    expected = learn(x)
    model.zero_grad()
    model.to(AWAY)
    assert next(model.parameters()).device == AWAY
    for one, two in zip(learn(x.to(AWAY)), expected, strict=True):
        assert torch.equal(one, two)


def test_the_pretended_device_refuses_what_a_gpu_refuses(away):
    values = torch.ones(3, device=AWAY)
    with pytest.raises(RuntimeError, match="on lazy:0 and on the CPU"):
        values + torch.ones(3)
    with pytest.raises(RuntimeError, match="on lazy:0 and on the CPU"):
        nn.Linear(3, 2)(values)
    with pytest.raises(RuntimeError, match="numpy"):
        values.numpy()
    assert (values * torch.tensor(2.0)).cpu().tolist() == [2.0, 2.0, 2.0]


def test_the_pretended_device_counts_transfers_and_waits(away):
    values = torch.ones(3).to(AWAY)
    values.copy_(torch.zeros(3))
    assert away.counts == {"to": 2}
    torch.empty(3).copy_(values)
    values.cpu()
    assert away.counts == {"to": 2, "from": 2}
    values.sum().item()
    assert away.counts["waits"] == 1
    (values + 1).mul_(2)
    assert away.counts == {"to": 2, "from": 2, "waits": 1}
