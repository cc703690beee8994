"""Gymnasium's MuJoCo environments, learned by Stable-Baselines3: the comparison everybody knows."""
