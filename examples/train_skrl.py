"""PPO from skrl with a PRISM policy, on Pendulum-v1: no adapter needed, a model wraps the actor.

python examples/train_skrl.py --steps 2000
"""

import argparse
from typing import Any

import gymnasium
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import Tensor, nn

from prism_motor.nn import build_actor


class Policy(GaussianMixin, Model):
    """The mean from a PRISM actor, and one learned standard deviation per action."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        size, actions = self.num_observations, self.num_actions
        self.actor = build_actor("prism", size, actions, hidden=(32,), latent=32, activation="tanh")
        self.log_std = nn.Parameter(torch.zeros(actions))

    # skrl declares the role as a keyword and passes it by position.
    def compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, inputs: dict[str, Any], role: str = ""
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the mean of the actions, up to 2 Nm in size, and the logarithm of their spread."""
        return 2 * self.actor(inputs["observations"]).tanh(), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    """A plain critic."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = build_actor("mlp", self.num_observations, 1, hidden=(64, 64), activation="tanh")

    def compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, inputs: dict[str, Any], role: str = ""
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the value of the observations."""
        return self.net(inputs["observations"]), {}


def mean_return(policy: Policy) -> float:
    """Return the mean of 20 episodes without noise, from fixed starts."""
    env = gymnasium.make_vec("Pendulum-v1", num_envs=20, vectorization_mode="sync")
    observations, total = env.reset(seed=1000)[0], 0.0
    with torch.no_grad():
        for _ in range(200):
            mean, _ = policy.compute({"observations": torch.as_tensor(observations)})
            observations, reward, *_ = env.step(mean.numpy())
            total += float(reward.mean())
    return total


def main() -> None:
    """Train, and compare with the untrained policy on the same episodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000, help="steps of 16 environments")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads cost more than they give in networks this small
    torch.manual_seed(0)

    pendulums = gymnasium.make_vec("Pendulum-v1", num_envs=16, vectorization_mode="sync")
    pendulums.reset(seed=0)
    env = wrap_env(pendulums)
    spaces: dict[str, Any] = {
        "observation_space": env.observation_space, "action_space": env.action_space,
        "device": "cpu",
    }  # fmt: skip
    policy, value = Policy(**spaces), Value(**spaces)
    config = PPO_CFG(rollouts=64, learning_epochs=10, mini_batches=16, discount_factor=0.9)
    config.time_limit_bootstrap = True
    config.rewards_shaper = lambda rewards, *_: 0.1 * rewards
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=64, num_envs=16, device="cpu")
    agent = PPO(models={"policy": policy, "value": value}, memory=memory, cfg=config, **spaces)
    before = mean_return(policy)
    options = {"timesteps": args.steps, "headless": True, "disable_progressbar": True}
    SequentialTrainer(env=env, agents=agent, cfg=options).train()
    print(f"mean return of 20 episodes: {before:.0f} before, {mean_return(policy):.0f} after")


if __name__ == "__main__":
    main()
