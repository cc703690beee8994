"""Studies that need no trained policy."""
