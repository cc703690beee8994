"""The learner: networks, losses, latents, replay buffer, and the warm start before it."""
