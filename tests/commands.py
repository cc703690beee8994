"""The prism command in this process: what it prints, and what it refuses."""

import pytest

from prism_motor.cli import main


def run(*words):
    """Run a command that succeeds."""
    main([str(word) for word in words])


def error_of(capsys, *words, code=2):
    """Return what a command says that ends with an error."""
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    assert stopped.value.code == code
    said = capsys.readouterr().err
    assert code == 1 or "Traceback" not in said
    return said
