"""Motion tracking: one policy for the whole body, prompted by latents of a learned space."""
