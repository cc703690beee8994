"""The velocity task: commands, gait clock, observations, rewards, randomisation, resets."""
