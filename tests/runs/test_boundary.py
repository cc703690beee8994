import os

import pytest

from prism_motor.runs.boundary import Boundary


@pytest.fixture
def root(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    folder = tmp_path / "root"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "file").write_text("ours")
    return folder


def test_what_lies_inside_is_held_and_what_does_not_is_noted_once(root):
    (root / "link").symlink_to("a")
    (root / "out").symlink_to("../outside")
    (root / "a" / "file-out").symlink_to("../../outside/secret")
    (root / "a" / "on").symlink_to("../out")  # by way of another link
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "loop").symlink_to("loop")
    boundary = Boundary(root)
    for name in ("a", "a/file", "link", "link/file", "missing", "a/missing"):
        assert boundary.holds(root / name), name
    assert boundary.holds(root)
    assert boundary.notes == []
    for name in ("out", "out/secret", "a/file-out", "link/file-out", "a/on", "dangling", "loop"):
        assert not boundary.holds(root / name), name
    assert boundary.notes[0] == "out is left out: it is a link that leads out of the folder."
    assert len(boundary.notes) == 6  # out/secret is left out for the sake of out


def test_the_folder_itself_may_be_a_link(root, tmp_path):
    given = tmp_path / "given"
    given.symlink_to(root)
    boundary = Boundary(given)
    assert boundary.holds(given / "a" / "file")
    (root / "back").symlink_to(given / "a")
    assert boundary.holds(given / "back" / "file")
    (root / "up").symlink_to("..")
    assert not boundary.holds(given / "up" / "outside" / "secret")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_can_last_for_ever_is_not_read(root):
    os.mkfifo(root / "pipe")
    boundary = Boundary(root)
    assert not boundary.holds(root / "pipe")
    assert "neither a file nor a folder" in boundary.notes[0]
