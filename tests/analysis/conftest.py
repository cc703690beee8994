from dataclasses import replace

import pytest
import torch

from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.presets import make_config
from prism_motor.train import session


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Make a run folder of an arm with a small network and random weights, once."""
    made = {}

    def make(arm="prism", preset="quadruped", seed=1):
        key = (arm, preset, seed)
        if key not in made:
            config = make_config(preset, arm, seed=seed)
            config = replace(
                config, envs=4, actor=replace(config.actor, hidden=(32, 16)), checkpoint_every=1
            )
            path = tmp_path_factory.mktemp("runs") / f"{preset}-{arm}-{seed}"
            run, trainer = session.start(config, path)
            with torch.no_grad():  # small actions do not upset four legs; gates that count
                last = trainer.ppo.actor.mlp[-1]
                (last[1] if isinstance(last, torch.nn.Sequential) else last).weight.mul_(0.2)
                for name, weight in trainer.ppo.actor.named_parameters():
                    if name.endswith("interaction.gate"):
                        weight.fill_(0.5)
            run.save(0, *trainer.state())
            made[key] = path
        return made[key]

    return make


@pytest.fixture(scope="session")
def make_policy(make_run):
    """Load the policy of such a run."""

    def make(*args, **kwargs):
        return load_policy(make_run(*args, **kwargs))

    return make


@pytest.fixture(scope="session")
def make_pusher(tmp_path_factory):
    """Make a run folder of an imitation policy that pushes forward whatever its weights are."""
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE
    from prism_motor.manipulation.domain import MANIPULATION

    made = {}
    quick = {"network.widths": [8, 16], "network.inference_steps": 1, "conditioner.latent": 8}

    def make(arm="prism", seed=1, task="button-press-v3"):
        key = (arm, seed, task)
        if key not in made:
            settings = {**quick, "task.suite": "metaworld", "task.name": task, "demos": "nowhere"}
            kind = "mlp-large" if arm == "mlp" else arm  # the matched one needs wider layers
            config = MANIPULATION.make_config(
                "state", kind, seed=seed, name=arm, overrides=settings
            )
            config = MANIPULATION.prepare(config)
            generator = torch.Generator().manual_seed(0)
            sizes = {STATE: config.task.state, OBJECTS: config.task.objects}
            vectors = {k: torch.rand(40, n, generator=generator) for k, n in sizes.items()}
            # Actions that never differ: what the network makes of them stays within 0.005.
            vectors[ACTION] = torch.tensor([0.0, 1.0, -0.2, 0.0]).expand(40, 4).clone()
            demonstrations = Demonstrations(vectors, {}, torch.tensor([20, 40]))
            path = tmp_path_factory.mktemp("pushers") / f"{arm}-{seed}"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    "prism_motor.manipulation.data.load_for", lambda config: demonstrations
                )
                run, _ = session.start(config, path)
            run.close()
            made[key] = path
        return made[key]

    return make


@pytest.fixture(scope="session")
def short_scene():
    """Return the pushers' task with a short horizon."""
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    from prism_motor.manipulation.tasks import find_task, make_environment

    task = replace(find_task("metaworld", "button-press-v3"), horizon=70)
    environment = make_environment(task, cameras=())
    yield environment
    environment.close()
