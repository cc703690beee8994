"""Robots and batched stepping on MuJoCo."""
