"""The edge of a folder that somebody gave: what is read or copied of it lies inside."""

from __future__ import annotations

import stat
from pathlib import Path


class Boundary:
    """Keeps readers of a folder from following links out of it.

    The folder itself may be reached through a link; links inside it that stay inside are followed.

    Args:
        root: The folder.

    Attributes:
        notes: What was left out, and why.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: list[str] = []
        self._inside = root.resolve()

    def holds(self, path: Path) -> bool:
        """Return whether something below the folder may be read, or note why it is left out.

        What does not exist may be; what is neither a file nor a folder may not, because reading it
        can last for ever.
        """
        place = self.root
        for part in path.relative_to(self.root).parts:
            place = place / part
            if place.is_symlink() and not self._stays(place):
                return self._leave_out(place, "a link that leads out of the folder")
        try:
            mode = path.stat().st_mode
        except OSError:
            return True
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return self._leave_out(path, "neither a file nor a folder")
        return True

    def _stays(self, link: Path) -> bool:
        try:
            return link.resolve().is_relative_to(self._inside)
        except (OSError, RuntimeError):  # a link to itself
            return False

    def _leave_out(self, path: Path, why: str) -> bool:
        note = f"{path.relative_to(self.root).as_posix()} is left out: it is {why}."
        if note not in self.notes:
            self.notes.append(note)
        return False
