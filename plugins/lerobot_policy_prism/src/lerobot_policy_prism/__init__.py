"""What LeRobot imports to know ``prism_diffusion`` and ``prism_smolvla``."""

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismSmolVLAConfig

__all__ = ["PrismDiffusionConfig", "PrismSmolVLAConfig"]
