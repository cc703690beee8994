"""Training: Stable-Baselines3 itself, update by update; policies act as its own do."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from prism_motor.gymnasium_control.domain import GYMNASIUM
from prism_motor.gymnasium_control.evaluation import run_episode
from prism_motor.runs import Run
from prism_motor.train import session
from prism_motor.train.distributed import ALONE
from prism_motor.train.finite import NonFiniteTrainingError
from tests.train.cases import assert_same_run, make_control

ENV = "Hopper-v5"


def _single(env):
    """Convert observations to single precision."""
    low, high = (np.full(11, bound, np.float32) for bound in (-np.inf, np.inf))
    box = gymnasium.spaces.Box(low, high, dtype=np.float32)
    return gymnasium.wrappers.TransformObservation(env, lambda seen: seen.astype(np.float32), box)


def plain_model(algorithm):
    """The same learner as the tiny preset's, as a user of Stable-Baselines3 writes it."""
    if algorithm == "ppo":
        env = VecNormalize(DummyVecEnv([lambda: Monitor(gymnasium.make(ENV))]), gamma=0.999)
        return PPO(
            "MlpPolicy", env, n_steps=48, batch_size=16, n_epochs=2, gamma=0.999,
            learning_rate=9.80828e-5, ent_coef=0.00229519, clip_range=0.2, gae_lambda=0.99,
            max_grad_norm=0.7, vf_coef=0.835671, seed=3, device="cpu",
            policy_kwargs={
                "log_std_init": -2, "ortho_init": False, "activation_fn": torch.nn.ReLU,
                "net_arch": {"pi": [24, 24], "vf": [24, 24]},
            },
        )  # fmt: skip
    env = DummyVecEnv([lambda: Monitor(_single(gymnasium.make(ENV)))])
    return SAC(
        "MlpPolicy", env, learning_rate=3e-4, buffer_size=70, learning_starts=30, batch_size=8,
        seed=3, device="cpu", policy_kwargs={"net_arch": [24, 24]},
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_the_mlp_arm_is_stable_baselines3_to_the_bit(algorithm):
    config = make_control("mlp", algorithm)
    trainer = GYMNASIUM.trainer(config, ALONE)
    rows = [trainer.update() for _ in range(config.updates)]
    ours = trainer.model.policy.state_dict()
    model = plain_model(algorithm)
    model.env.seed(3000)  # so that no run's starts are those of an evaluation
    model.learn(config.updates * config.samples_per_update)
    theirs = model.policy.state_dict()
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.equal(value, ours[name]), name
    expected = np.mean([one["r"] for one in model.ep_info_buffer])
    assert rows[-1]["rollout/ep_rew_mean"] == pytest.approx(expected)
    assert sum(row["episodes"] for row in rows) == len(model.ep_info_buffer)


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
@pytest.mark.parametrize("arm", ["mlp", "prism"])
def test_a_loaded_policy_acts_as_stable_baselines3_predicts(arm, algorithm, tmp_path):
    run, trainer = session.start(make_control(arm, algorithm, updates=2), tmp_path / "run")
    session.train(run, trainer)
    policy = GYMNASIUM.load_policy(run.path)
    env = gymnasium.make(ENV)
    seen, _ = env.reset(seed=101_000)
    total, steps, done = 0.0, 0, False
    while not done:
        shown = trainer.model.env.normalize_obs(seen) if algorithm == "ppo" else seen
        action, _ = trainer.model.predict(shown.astype(np.float32), deterministic=True)
        with torch.inference_mode():
            ours = policy(torch.from_numpy(seen)[None])[0].numpy()
        np.testing.assert_array_equal(action, ours)
        seen, reward, terminated, truncated, _ = env.step(action)
        total, steps, done = total + reward, steps + 1, terminated or truncated
    episode = run_episode(policy, ENV, seed=101, number=0)
    assert (episode.reset_seed, episode.steps) == (101_000, steps)
    assert episode.episode_return == total
    assert episode.completed == truncated
    assert run_episode(policy, ENV, seed=101, number=1).episode_return != total


def test_several_environments_resume_exactly(tmp_path):
    config = make_control("prism", updates=4, envs=3)
    session.train(*session.start(config, tmp_path / "whole"))
    run, trainer = session.start(config, tmp_path / "parts")
    session.train(run, trainer, 1)
    session.train(*session.resume(run.path))
    assert_same_run(tmp_path / "parts", tmp_path / "whole")
    tensors, _ = session.resume(run.path)[1].live_state()
    for name, value in Run.open(run.path).load().tensors.items():
        assert torch.equal(value, tensors[name]), name


def test_rows_of_the_replay_buffer_are_written_once(tmp_path):
    run, trainer = session.start(make_control("mlp", "sac", keep_checkpoints=1), tmp_path / "run")
    written = {}
    for update in range(1, 7):
        session.train(run, trainer, update)
        for file in (run.path / "replay").glob("*"):
            stamp = file.stat().st_mtime_ns
            assert written.setdefault(file.name, stamp) == stamp, "a file was written again"
    assert trainer.replay.added == 120
    assert trainer.replay.full
    assert len(written) == 120 // 16
    state = json.loads((run.path / "checkpoints" / "00000006" / "state.json").read_text())
    assert [one["first"] for one in state["replay"]["segments"]] == [48, 64, 80, 96]


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_a_weight_that_is_not_finite_is_named_and_leaves_no_trace(algorithm, tmp_path):
    run, trainer = session.start(make_control("prism", algorithm), tmp_path / "run")
    session.train(run, trainer, 3)
    before = {name: value.clone() for name, value in trainer.state()[0].items()}
    with torch.no_grad():
        next(trainer.model.policy.parameters()).fill_(float("nan"))
    with pytest.raises(NonFiniteTrainingError, match=r"because weight 'policy\."):
        trainer.update()
    after = trainer.state()[0]
    changed = [name for name, value in before.items() if not torch.equal(value, after[name])]
    assert {name.partition(".")[0] for name in changed} <= {"policy", "model"}
    assert trainer.updates == 3
