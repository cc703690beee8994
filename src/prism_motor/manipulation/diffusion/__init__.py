"""Diffusion Policy trained on demonstrations: network, samples, trainer and policy."""
