"""The processors of ``prism_smolvla`` are LeRobot's for SmolVLA.

LeRobot looks for them in this module, by this function's name, from 0.6 on.
"""

from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors

make_prism_smolvla_pre_post_processors = make_smolvla_pre_post_processors
