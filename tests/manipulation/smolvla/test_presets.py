"""Tables 10 and 11 of the paper, SmolVLA's columns, and how presets are named."""

from dataclasses import replace

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("libero", reason="hf-libero is not installed")

import torch

from prism_motor.domains import DOMAINS
from prism_motor.manipulation.data import tasks_of
from prism_motor.manipulation.presets import preset_of
from prism_motor.manipulation.smolvla import network
from prism_motor.manipulation.smolvla.vlm import SIZES, write_vlm
from prism_motor.runs.configs import flatten, to_dict

DOMAIN = DOMAINS["manipulation"]

TABLE_10 = {
    "demos": "HuggingFaceVLA/libero",
    "task.suite": "libero",
    "task.name": "all",
    "network.vlm": "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
    "network.vlm_layers": 16,
    "seed": 1000,
    "batch": 64,
    "optimiser.learning_rate": 1e-4,
    "optimiser.warmup": 100,
    "updates": 100_000,
    "reported": 80_000,
    "conditioner.degree": 2,
}


def test_the_preset_paper_is_that_of_the_paper():
    config = DOMAIN.flags("smolvla-paper", "prism")
    found = flatten(to_dict(config))
    assert {key: found[key] for key in TABLE_10} == TABLE_10
    assert 80_000 % config.checkpoint_every == 0
    evaluation = DOMAIN.protocol("smolvla-paper")
    assert len(DOMAIN.episode_keys(config, evaluation)) == 2000
    suites = [task.suite for task in tasks_of(config)]
    names = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
    assert suites == [name for name in names for _ in range(10)]


@pytest.mark.parametrize(
    ("arm", "policy", "conditioner"),
    [
        ("linear", 450_046_176, 31_680),
        ("prism", 451_924_896, 1_910_400),
        ("mlp-large", 456_245_472, 6_230_976),
    ],
)
def test_table_11(arm, policy, conditioner, tmp_path, monkeypatch):
    config = DOMAIN.flags("smolvla-paper", arm)
    sizes = replace(config.task, state=8, action=7, cameras=("agentview", "robot0_eye_in_hand"))
    there = write_vlm(tmp_path, SIZES[config.network.vlm])
    monkeypatch.setattr(network, "find_vlm", lambda name: str(there))
    settings = network.make_policy_config(replace(config, task=sizes))
    settings.load_vlm_weights = False
    from prism_motor.integrations.lerobot import PrismSmolVLAPolicy

    with torch.device("meta"):
        built = PrismSmolVLAPolicy(settings)
    state = built.model.state_proj
    assert sum(p.numel() for p in built.parameters()) == policy
    assert sum(p.numel() for p in state.parameters()) == conditioner
    if arm == "prism":
        assert settings.prism_gate_init == 0.01
        assert type(state.output_norm).__name__ == "RMSNorm"


def test_the_optimiser_and_the_schedule_are_those_of_the_settings(tmp_path, monkeypatch):
    config = DOMAIN.flags("smolvla-paper", "linear")
    task = replace(config.task, state=8, action=7, cameras=("agentview",))
    monkeypatch.setattr(network, "find_vlm", lambda name: str(tmp_path))
    settings = network.make_policy_config(replace(config, task=task))
    optimizer = settings.get_optimizer_preset().build([torch.nn.Parameter(torch.zeros(1))])
    schedule = settings.get_scheduler_preset().build(optimizer, config.updates)
    rates = {}
    for update in range(100_001):
        if update in (0, 100, 50_000, 100_000):
            rates[update] = optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()
    assert type(optimizer).__name__ == "AdamW"
    assert rates[0] < 2e-6
    assert rates[100] == pytest.approx(1e-4, rel=1e-3)
    assert rates[50_000] == pytest.approx((1e-4 + 2.5e-6) / 2, rel=1e-2)
    assert rates[100_000] == pytest.approx(2.5e-6)


def test_names_of_presets():
    assert preset_of("smolvla", "paper") == preset_of("smolvla", "smolvla-paper") == "smolvla-paper"
    assert preset_of("smolvla", None) == "smolvla-laptop"
    assert preset_of("diffusion", "paper") == "paper"
    assert preset_of("diffusion", None) == "state"
    with pytest.raises(ValueError, match=r"Unknown preset of smolvla 'state'.*laptop, paper, tiny"):
        preset_of("smolvla", "state")
    with pytest.raises(ValueError, match=r"Unknown preset of diffusion 'smolvla-tiny'"):
        preset_of("diffusion", "smolvla-tiny")
    with pytest.raises(ValueError, match=r"Unknown backbone 'smolvl'.*Did you mean 'smolvla'"):
        preset_of("smolvl", "paper")
