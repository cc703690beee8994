"""Prompts: what a policy is asked for, as latents of motions, poses and rewards."""
