"""Pictures of start poses: kept once, and shown at half over what is seen now."""

import time

import numpy as np

from prism_motor.pilots.pictures import StartPictures, blend, has_display

RED = np.zeros((32, 48, 3), np.uint8) + np.array([200, 0, 0], np.uint8)
BLUE = np.zeros((32, 48, 3), np.uint8) + np.array([0, 0, 100], np.uint8)


def test_both_pictures_are_half_there():
    assert (blend(RED, BLUE) == [100, 0, 50]).all()
    half = blend(RED, BLUE[:16, :24])  # another size
    assert half.shape == RED.shape
    assert (half == [100, 0, 50]).all()


def test_the_first_picture_of_a_pose_stays(tmp_path):
    pictures = StartPictures(tmp_path, None)
    assert pictures.reference(3) == {}
    pictures.keep(3, {"top": RED})
    pictures.keep(3, {"top": BLUE})
    assert (pictures.reference(3)["top"] == RED).all()
    assert pictures.reference(1) == {}
    (file,) = pictures.overlay(3, {"top": BLUE, "side": BLUE})
    shown = StartPictures(tmp_path, None).reference
    assert shown(3).keys() == {"top"}
    from PIL import Image

    assert (np.asarray(Image.open(file)) == [100, 0, 50]).all()
    assert pictures.overlay(3, {"top": RED}) == []  # not again so soon
    time.sleep(0.45)
    assert pictures.overlay(3, {"top": RED}) == [file]


def test_without_a_display_the_path_is_told(tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_display()
    pictures = StartPictures(tmp_path, None)
    pictures.keep(1, {"top": RED})
    files = pictures.overlay(1, {"top": BLUE})
    assert str(files[0]) in pictures.show(files)
    monkeypatch.setenv("DISPLAY", ":0")
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert "browser" in pictures.show(files)
    assert "browser" in pictures.show(files)
    assert len(opened) == 1  # the page renews itself
    assert 'data-file="overlay-top.png"' in (tmp_path / "poses" / "overlay.html").read_text()
