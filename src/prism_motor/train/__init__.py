"""Training and evaluation, shared by all domains."""
