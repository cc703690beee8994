"""What counts as a mistake of the user, and what as a bug."""

import errno
import shutil

import pytest

from prism_motor._checks import BugError, EvaluationError, InputError, find_mistake


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("give a number"), "give a number"),
        (EvaluationError("the reward is nan"), "the reward is nan"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/one"),
         "runs/one: No space left on device. Free some space on the disk and try again."),
        (PermissionError(errno.EACCES, "Permission denied"),
         "Permission denied. Choose another folder."),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
         "x: No such file or directory"),
        (shutil.Error([("a", "copy/a", "[Errno 28] No space left on device: 'a' -> 'copy/a'")]),
         "copy/a could not be written: No space left on device."),
    ],
)  # fmt: skip
def test_mistakes_have_a_message(error, said):
    assert find_mistake(error) == said


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        OSError("without a number"),
        OSError(errno.EBADF, "Bad file descriptor"),
        FileNotFoundError("made by hand"),
        shutil.Error("a and b are the same file"),
        BugError("Traceback of another process"),
    ],
)
def test_everything_else_is_a_bug(error):
    assert find_mistake(error) is None
