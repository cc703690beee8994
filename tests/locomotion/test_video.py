import os
import subprocess
import sys
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
import torch

from prism_motor._checks import PrismError
from prism_motor.cli import main
from prism_motor.locomotion.overlay import WalkingOverlay
from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.video import VideoConfig, WalkingVideo
from prism_motor.sim.meshes import picture_model
from prism_motor.sim.rendering import Renderer, RenderingError, find_backend
from prism_motor.sim.robots import make_robot
from prism_motor.sim.video_files import FORMATS, unused_file, write_video
from prism_motor.train import session

SMALL = {"width": 96, "height": 72}


@pytest.fixture(autouse=True)
def _can_draw():
    try:
        find_backend()
    except RenderingError as error:
        pytest.skip(str(error))


def stand(observations):
    return torch.zeros(len(observations), 12)


def fall(observations):
    return torch.full((len(observations), 12), 18.0)


# Pictures ---------------------------------------------------------------------------------------


def draw(*places):
    robot = make_robot("g1")
    qpos = np.zeros(19)
    qpos[2], qpos[3], qpos[7:] = robot.stand_height, 1.0, robot.default_pose
    pictures = []
    with Renderer(picture_model(robot, primitives=True), robot, width=160, height=120) as renderer:
        for place in places:
            qpos[:3] = place
            pictures.append(renderer.draw(qpos).astype(int))
    return pictures


def dark(picture):
    """Rows and columns of the pixels of the robot's dark parts."""
    return np.argwhere(picture.sum(-1) < 150)


def test_the_robot_is_in_the_picture_from_head_to_feet():
    (picture,) = draw((0, 0, 0.784))
    rows, columns = dark(picture).T
    assert len(rows) > 200
    assert 5 < rows.min() < 30  # visor
    assert 85 < rows.max() < 115  # soles
    assert abs(columns.mean() - 80) < 12
    empty, _ = draw((0, 0, -5), (0, 0, -5))
    assert len(dark(empty)) == 0


def test_the_camera_follows_smoothly_and_jumps_after_a_reset():
    start, near, far = draw((0, 0, 0.784), (0.3, 0, 0.784), (50, -20, 0.784))
    middles = [dark(picture)[:, 1].mean() for picture in (start, near, far)]
    assert middles[1] - middles[0] > 3  # it lags behind a step,
    assert abs(middles[2] - middles[0]) < 1  # and is there at once after a jump


def test_the_same_state_gives_the_same_picture():
    one, two = draw((0, 0, 0.784)), draw((0, 0, 0.784))
    np.testing.assert_array_equal(one[0], two[0])


def test_the_ground_has_no_shadow_of_its_own():
    pictures = draw(*((0.024 * step, 0.011 * step, 0.784) for step in range(60)))
    away = [picture[60:, 115:].sum(-1) for picture in pictures]  # right of the robot
    assert min(picture.min() for picture in away) > 500  # dark patches came and went: 379


def test_no_way_to_draw_names_the_packages(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    find_backend.cache_clear()
    with pytest.raises(RenderingError, match=r"libosmesa6.*libegl1"):
        find_backend()
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    robot = make_robot("g1")
    with pytest.raises(RenderingError, match=r"MUJOCO_GL=nonsense"):
        Renderer(picture_model(robot, primitives=True), robot, **SMALL)
    find_backend.cache_clear()


class Full:
    """A writer whose ffmpeg has ended, as on a full disk, with the errors of imageio."""

    def __init__(self, file, rate):
        pass

    def append_data(self, picture):
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            raise OSError("many lines about ffmpeg")  # noqa: B904  as imageio does

    def close(self):
        pass


class Silent(Full):
    """A writer whose ffmpeg wrote nothing and did not say so."""

    def append_data(self, picture):
        pass


@pytest.mark.parametrize("writer", [Full, Silent])
def test_a_video_that_could_not_be_written_is_one_message(tmp_path, monkeypatch, writer):
    monkeypatch.setitem(FORMATS, ".mp4", writer)
    with pytest.raises(PrismError, match=r"walk\.mp4 could not be written: .* disk full"):
        write_video(tmp_path / "walk.mp4", [np.zeros((16, 16, 3), np.uint8)], 25)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_found_before_anything_is_drawn(tmp_path):
    def pictures():
        pytest.fail("it was drawn")
        yield

    (tmp_path / "folder").touch()
    with pytest.raises(OSError, match="folder"):
        write_video(tmp_path / "folder" / "walk.mp4", pictures(), 25)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("foo", "MUJOCO_GL: foo. Unset MUJOCO_GL."),
        ("glfw", "Cannot draw with MUJOCO_GL=glfw: "),  # which needs a screen
    ],
)
def test_a_backend_that_cannot_work_is_one_message(backend, said, tmp_path):
    hidden = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    result = subprocess.run(
        [sys.executable, "-m", "prism_motor.cli", "video", "g1-prism", "--seconds", "0.1"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**hidden, "MUJOCO_GL": backend},
    )  # fmt: skip
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("prism: error: ")
    assert said in line


def test_bars_are_as_long_as_the_velocity():
    white = np.full((480, 640, 3), 255, dtype=np.uint8)
    overlay = WalkingOverlay("title", 640, 480)

    def blue(velocity):
        picture = overlay.draw(white, "status", (0.0, 0.0, 0.0), velocity).astype(int)
        assert (picture[150:] == 255).all()  # nothing over the legs
        bars = picture[70:134, 66:142]
        columns = np.argwhere((bars == (26, 107, 184)).all(-1))[:, 1] + 66
        return columns.min(), columns.max()

    assert blue((1.0, 0.0, 0.0)) == pytest.approx((104, 140), abs=4)  # less the mark
    assert blue((-0.5, 0.0, 0.0)) == pytest.approx((86, 104), abs=4)
    assert blue((9.0, 0.0, 0.0)) == blue((1.0, 0.0, 0.0))


# Videos -----------------------------------------------------------------------------------------


def test_a_film_has_the_length_and_the_command_that_were_asked_for():
    short = replace(TASKS["laptop"], commands=replace(TASKS["laptop"].commands, resample_after=0.1))
    film = WalkingVideo(stand, short, VideoConfig(0.4, (0.3, -0.1, 0.2), **SMALL), "title")
    assert (film.rate, len(film)) == (25.0, 10)
    commands = []
    for picture in film:
        assert picture.shape == (72, 96, 3)
        commands.append(film.env.commands.values[0].tolist())
    assert len(commands) == 10
    assert commands == [pytest.approx([0.3, -0.1, 0.2])] * 10
    random = WalkingVideo(stand, short, VideoConfig(0.4, None, **SMALL), "title")
    seen = {tuple(random.env.commands.values[0].tolist()) for _ in random}
    assert len(seen) > 2
    assert WalkingVideo(
        stand, TASKS["g1"], VideoConfig(0.3, **SMALL), "title"
    ).rate == pytest.approx(100 / 3)


def test_falls_are_counted_and_time_outs_do_not_happen():
    task = replace(
        TASKS["laptop"], terminations=replace(TASKS["laptop"].terminations, duration=0.1)
    )
    falling = WalkingVideo(fall, task, VideoConfig(0.4, **SMALL), "title")
    assert len(list(falling)) == 10
    assert falling.falls >= 2
    standing = WalkingVideo(stand, task, VideoConfig(0.4, **SMALL), "title")
    list(standing)
    assert standing.falls == 0
    assert standing.env.episode_length_buf.tolist() == [20]


def test_a_task_without_commands_is_filmed_without_them(plugin):
    plugin("my_task")
    config = VideoConfig(seconds=0.2, primitives=True, **SMALL)
    film = WalkingVideo(lambda x: torch.zeros(len(x), 4), TASKS["hopper-hop"], config, "hop")
    pictures = list(film)
    assert len(pictures) == len(film) > 3
    assert pictures[0].shape == (72, 96, 3)


def test_conditions_apply():
    film = WalkingVideo(
        stand, TASKS["laptop"], VideoConfig(0.1, None, "low-friction", **SMALL), "title"
    )
    assert film.env.friction.tolist() == pytest.approx([0.2])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seconds": 0.0}, "seconds must be above 0"),
        ({"width": 62}, "width must be from 64 to 3840"),
        ({"height": 101}, "height must be even"),
        ({"condition": "icy"}, "Unknown condition 'icy'"),
        ({"command": (float("nan"), 0.0, 0.0)}, "command\\[0\\] must be a finite number"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        VideoConfig(**wrong)


# Files ------------------------------------------------------------------------------------------


def shades(count):
    return [np.full((72, 96, 3), 20 * i, dtype=np.uint8) for i in range(count)]


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_files_hold_every_picture_at_the_right_rate(tmp_path, suffix):
    file = tmp_path / "new" / f"film{suffix}"
    write_video(file, shades(10), 25.0)
    pictures = imageio.imread(file)
    assert pictures.shape == (10, 72, 96, 3)
    for i, picture in enumerate(pictures):
        assert abs(picture.mean() - 20 * i) < 6
    metadata = imageio.immeta(file)
    assert metadata["fps"] == 25.0 if suffix == ".mp4" else metadata["duration"] == 40
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_an_interrupted_video_leaves_nothing(tmp_path):
    def broken():
        yield from shades(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video(tmp_path / "film.mp4", broken(), 25.0)
    assert list(tmp_path.iterdir()) == []


# Command ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = make_config("laptop", "mlp", seed=3)
    config = replace(config, ppo=replace(config.ppo, steps=2, minibatches=1), envs=2)
    path = tmp_path_factory.mktemp("video") / "run"
    session.start(config, path)
    return path


def test_command_writes_a_video_into_the_run(run, capsys):
    words = ["video", str(run), "--width", "96", "--height", "72"]
    main([*words, "--seconds", "0.4"])
    assert "the robot never fell" in capsys.readouterr().out
    first = run / "videos" / "00000000-nominal-forward0.5-seed1.mp4"
    assert imageio.imread(first).shape == (10, 72, 96, 3)

    # Later ones are put beside it, whatever they show.
    contents = first.read_bytes()
    for more in (["--seconds", "0.1"], ["--seconds", "0.1", "--command", "0.2", "0", "-0.3"]):
        main([*words, *more])
    assert sorted(file.name for file in first.parent.iterdir()) == [
        "00000000-nominal-forward0.2-turn-0.3-seed1.mp4",
        "00000000-nominal-forward0.5-seed1-2.mp4",
        first.name,
    ]
    assert first.read_bytes() == contents


@pytest.mark.parametrize(
    ("command", "told"),
    [((0.6, 0.0, 0.5), "forward0.6-turn0.5"), ((0, 0, 0), "standing"), (None, "random")],
)
def test_names_of_videos_say_what_they_show(command, told):
    config = VideoConfig(command=command, condition="payload", seed=4)
    assert config.name == f"payload-{told}-seed4"


def test_numbered_names_are_those_of_no_other_video(tmp_path):
    assert unused_file(tmp_path, "a") == tmp_path / "a.mp4"
    (tmp_path / "a.mp4").touch()
    (tmp_path / "a-2.gif").touch()
    assert unused_file(tmp_path, "a") == tmp_path / "a-3.mp4"


@pytest.mark.skipif(find_library("OSMesa") is None, reason="apt-get install libosmesa6")
def test_command_in_software_without_complaints(run, tmp_path):
    out = tmp_path / "film.gif"
    words = ["video", str(run), "--out", str(out), "--seconds", "0.2", "--command", "random"]
    environment = {k: v for k, v in os.environ.items() if k != "PYOPENGL_PLATFORM"}
    result = subprocess.run(
        [sys.executable, "-m", "prism_motor.cli", *words, "--width", "96", "--height", "72"],
        env={**environment, "MUJOCO_GL": "osmesa"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert len(imageio.imread(out)) == 5


def test_mistakes_are_reported_before_anything_is_simulated(run, tmp_path, capsys, monkeypatch):
    def build(*_, **__):
        raise AssertionError("a simulation was started")

    monkeypatch.setattr("prism_motor.locomotion.video.make_env", build)

    def error_of(*words):
        with pytest.raises(SystemExit) as caught:
            main(["video", *map(str, words)])
        assert caught.value.code == 2
        return capsys.readouterr().err

    assert "No run found at" in error_of(tmp_path / "nowhere")
    assert "choose one of: .gif, .mp4" in error_of(run, "--out", tmp_path / "film.avi")
    (tmp_path / "folder.mp4").mkdir()
    assert "is a folder" in error_of(run, "--out", tmp_path / "folder.mp4")
    assert "Did you mean 'pushes'" in error_of(run, "--condition", "push")
    assert "has no checkpoint 5" in error_of(run, "--checkpoint", 5)
    assert not Path(tmp_path / "film.avi").exists()
