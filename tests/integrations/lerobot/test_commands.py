"""LeRobot's own commands find the policies and train, resume and reload them."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import numpy as np
import torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.policies.factory import get_policy_class, make_policy, make_pre_post_processors
from lerobot.scripts import lerobot_train
from lerobot.utils.import_utils import register_third_party_plugins

from prism_motor.integrations.lerobot import PrismDiffusionPolicy, PrismSmolVLAPolicy
from prism_motor.integrations.lerobot.checkpoints import CheckpointMismatchError
from prism_motor.manipulation.smolvla.vlm import SIZES, write_vlm

try:
    importlib.metadata.distribution("lerobot_policy_prism")
except importlib.metadata.PackageNotFoundError:
    pytest.skip(
        "the plugin is not installed: pip install --no-deps -e plugins/lerobot_policy_prism",
        allow_module_level=True,
    )

REPOSITORY = "local/tiny"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Two episodes of random frames in LeRobot's format."""
    root = tmp_path_factory.mktemp("data") / "tiny"
    features = {
        "observation.state": {"dtype": "float32", "shape": (8,), "names": None},
        "action": {"dtype": "float32", "shape": (7,), "names": None},
        "observation.images.front": {
            "dtype": "image",
            "shape": (32, 32, 3),
            "names": ["height", "width", "channels"],
        },
    }
    data = LeRobotDataset.create(REPOSITORY, 20, features, root=root, use_videos=False)
    random = np.random.default_rng(0)
    for _ in range(2):
        for _ in range(20):
            data.add_frame(
                {
                    "observation.state": random.normal(size=8).astype(np.float32),
                    "action": random.uniform(-1, 1, 7).astype(np.float32),
                    "observation.images.front": random.integers(0, 255, (32, 32, 3), np.uint8),
                    "task": "push the red block",
                }
            )
        data.save_episode()
    data.finalize()
    return root


def arguments(dataset, output, *policy):
    return [
        f"--dataset.repo_id={REPOSITORY}",
        f"--dataset.root={dataset}",
        f"--output_dir={output}",
        "--steps=2",
        "--batch_size=2",
        "--num_workers=0",
        "--log_freq=1",
        "--wandb.enable=false",
        "--policy.device=cpu",
        "--policy.push_to_hub=false",
        *policy,
    ]


@pytest.fixture
def train_here(monkeypatch):
    """Run lerobot-train in this process, which spares the imports."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def run(*command):
        monkeypatch.setattr(sys, "argv", ["lerobot-train", *map(str, command)])
        lerobot_train.main()

    return run


def test_discovery_registers_both_policies():
    register_third_party_plugins()
    assert get_policy_class("prism_diffusion") is PrismDiffusionPolicy
    assert get_policy_class("prism_smolvla") is PrismSmolVLAPolicy


@pytest.mark.slow
def test_diffusion_trains_reloads_and_resumes(dataset, tmp_path, train_here):
    output = tmp_path / "run"
    command = arguments(
        dataset,
        output,
        "--policy.type=prism_diffusion",
        "--policy.prism_latent=32",
        "--policy.down_dims=[16,32]",
        "--policy.n_groups=4",
        "--policy.num_inference_steps=2",
    )
    program = Path(sys.executable).with_name("lerobot-train")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    done = subprocess.run(
        [program, *command], env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]

    saved = output / "checkpoints" / "last" / "pretrained_model"
    groups = json.loads((saved.parent / "training_state/optimizer_param_groups.json").read_text())
    assert [group["weight_decay"] for group in groups] == [1e-6, 0.0]

    # What lerobot-eval and lerobot-rollout do with --policy.path.
    config = PreTrainedConfig.from_pretrained(saved)
    config.pretrained_path = saved
    policy = make_policy(config, ds_meta=LeRobotDataset(REPOSITORY, root=dataset).meta)
    assert isinstance(policy, PrismDiffusionPolicy)
    assert policy.diffusion.conditioner.interaction.out_features == 32
    preprocess, postprocess = make_pre_post_processors(config, pretrained_path=str(saved))
    seen = {
        "observation.state": torch.zeros(8),
        "observation.images.front": torch.zeros(3, 32, 32),
    }
    assert postprocess(policy.select_action(preprocess(seen))).shape == (1, 7)

    config.conditioner = "mlp"
    with pytest.raises(CheckpointMismatchError, match=r"conditioner=prism.*conditioner=mlp"):
        make_policy(config, ds_meta=LeRobotDataset(REPOSITORY, root=dataset).meta)

    train_here(f"--config_path={saved / 'train_config.json'}", "--resume=true", "--steps=3")
    step = output / "checkpoints" / "last" / "training_state" / "training_step.json"
    assert json.loads(step.read_text())["step"] == 3


@pytest.mark.slow
def test_smolvla_trains_and_reloads(dataset, tmp_path, train_here):
    vlm = write_vlm(tmp_path / "vlm", SIZES["random-tiny"])
    output = tmp_path / "run"
    train_here(
        *arguments(
            dataset,
            output,
            "--policy.type=prism_smolvla",
            f"--policy.vlm_model_name={vlm}",
            "--policy.num_vlm_layers=2",
            "--policy.resize_imgs_with_padding=[32,32]",
            "--policy.chunk_size=4",
            "--policy.n_action_steps=4",
            "--policy.num_steps=2",
        )
    )
    policy = PrismSmolVLAPolicy.from_pretrained(output / "checkpoints/last/pretrained_model")
    gate = policy.model.state_proj.interaction.gate
    assert not torch.equal(gate, torch.full_like(gate, 0.01))
    assert (policy.model.state_proj.interaction.weight[..., 8:] == 0).all()
