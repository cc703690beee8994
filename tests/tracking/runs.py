"""A tiny tracking run, for tests."""

from prism_motor.cli import main


def train_tiny(folder, *words):
    """Train the preset ``tiny``, as the command does; a few seconds."""
    path = folder / "tiny"
    main(["train", "tracking", "--preset", "tiny", "--out", str(path), "--threads", "1", *words])
    return path
