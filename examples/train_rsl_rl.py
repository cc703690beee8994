"""PPO from rsl_rl with a PRISM actor: learn to balance pendulums, then export the policy.

python examples/train_rsl_rl.py --output policy.onnx
"""

import argparse

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from prism_motor.export import export_onnx

CONFIG = {
    "num_steps_per_env": 24,
    "save_interval": 1000,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "actor": {"class_name": "prism_motor.integrations.rsl_rl:PrismModel", "hidden_dims": [32, 32]},
    "critic": {"class_name": "MLPModel", "hidden_dims": [32, 32]},
    "algorithm": {"class_name": "PPO", "rnd_cfg": None, "symmetry_cfg": None},
}


class Pendulums(VecEnv):
    """Torque-driven pendulums that start near upright: 4 s episodes at 20 Hz."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, 80
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.angle, self.speed = torch.rand(2, num_envs) - 0.5

    def get_observations(self) -> TensorDict:
        """Return sine, cosine and angular velocity."""
        state = torch.stack([self.angle.sin(), self.angle.cos(), self.speed], -1)
        return TensorDict({"policy": state}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """Apply torques for 50 ms; reward uprightness, start anew after a fall or 4 s."""
        self.speed += 0.05 * (10 * self.angle.sin() + 4 * actions[:, 0].clamp(-2, 2))
        self.angle += 0.05 * self.speed
        self.episode_length_buf += 1
        reward = self.angle.cos() - 0.01 * self.speed.square()
        time_out = self.episode_length_buf >= self.max_episode_length
        done = (self.angle.abs() > 1.5) | time_out
        start = torch.rand(2, self.num_envs) - 0.5
        self.angle, self.speed = torch.where(done, start, torch.stack([self.angle, self.speed]))
        self.episode_length_buf[done] = 0
        return self.get_observations(), reward, done, {"time_outs": time_out}


def fall_rate(runner: OnPolicyRunner) -> float:
    """Return the falls per pendulum and 4 s under the noise-free policy, from fixed starts."""
    torch.manual_seed(1)
    env, policy, falls = Pendulums(256), runner.get_inference_policy(), torch.zeros(())
    with torch.inference_mode():
        for _ in range(env.max_episode_length):
            _, _, done, extras = env.step(policy(env.get_observations()))
            falls += (done & ~extras["time_outs"]).sum()
    return falls.item() / env.num_envs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--output", default="policy.onnx")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads cost more than they give in networks this small
    torch.manual_seed(0)
    runner = OnPolicyRunner(Pendulums(64), CONFIG)
    before = fall_rate(runner)
    runner.learn(args.iterations)
    print(f"falls per episode: {before:.2f} before, {fall_rate(runner):.2f} after training")
    policy = runner.alg.get_policy().as_onnx(verbose=False)
    export_onnx(policy, args.output, torch.zeros(1, 3), metadata={"frequency": 20.0})
    print(f"wrote {args.output}, which agrees with the policy to 1e-5")
