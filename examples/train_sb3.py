"""PPO from Stable-Baselines3 with a PRISM policy branch and SB3's own critic, on Pendulum-v1.

python examples/train_sb3.py --steps 30000
"""

import argparse

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from prism_motor.integrations.stable_baselines3 import PrismActorCriticPolicy
from prism_motor.nn import PolynomialLayer


def main() -> None:
    """Train, compare with the untrained policy on the same episodes, show what was learned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30_000, help="environment steps")
    parser.add_argument("--output", default="pendulum.zip")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads cost more than they give in networks this small

    model = PPO(
        PrismActorCriticPolicy,
        make_vec_env("Pendulum-v1", n_envs=4, seed=0),
        policy_kwargs={"latent": 32, "degree": 2},
        n_steps=256,
        gamma=0.9,
        learning_rate=1e-3,
        seed=0,
        device="cpu",
    )

    def mean_return() -> float:
        episodes = make_vec_env("Pendulum-v1", n_envs=10, seed=1000)
        returns, _ = evaluate_policy(model, episodes, n_eval_episodes=20)
        return float(returns)  # pyright: ignore[reportArgumentType]

    before = mean_return()
    model.learn(args.steps)
    print(f"mean return of 20 episodes: {before:.0f} before, {mean_return():.0f} after training")
    layer = next(m for m in model.policy.modules() if isinstance(m, PolynomialLayer))
    for interaction in layer.interactions(["cos", "sin", "speed"], top=3):
        print(f"  {interaction}")
    model.save(args.output)
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
