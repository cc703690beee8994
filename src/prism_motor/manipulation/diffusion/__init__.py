"""Diffusion Policy on demonstrations: network, samples, training, acting."""
