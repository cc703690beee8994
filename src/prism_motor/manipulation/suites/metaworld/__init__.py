"""Meta-World 3: fifty tasks of one arm, without downloads."""
