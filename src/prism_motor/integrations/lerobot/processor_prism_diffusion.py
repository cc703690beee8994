"""The processors of ``prism_diffusion`` are LeRobot's for Diffusion Policy.

LeRobot looks for them in this module, by this function's name, from 0.6 on.
"""

from lerobot.policies.diffusion.processor_diffusion import make_diffusion_pre_post_processors

make_prism_diffusion_pre_post_processors = make_diffusion_pre_post_processors
