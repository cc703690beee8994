"""Videos of tracking: the robot, the clip as a ghost, and what is said about them."""

from dataclasses import replace

import imageio.v3 as imageio
import numpy as np
import pytest
import torch

from prism_motor.cli import main
from prism_motor.runs import Run
from prism_motor.sim.meshes import picture_model
from prism_motor.sim.rendering import Renderer, RenderingError, find_backend
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.domain import TRACKING
from prism_motor.tracking.evaluation import Piece, TrackedPiece
from prism_motor.tracking.metrics import earth_movers_distance
from prism_motor.tracking.motions import find_clip, make_motion
from prism_motor.tracking.overlay import TrackingOverlay
from prism_motor.tracking.references import References
from prism_motor.tracking.training_videos import SETTINGS, TrackingVideos
from prism_motor.tracking.video import TrackingFilm, TrackingVideo
from prism_motor.train import session
from tests.tracking.tiny import make_run

SMALL = {"width": 96, "height": 72, "primitives": True}


@pytest.fixture(autouse=True)
def _can_draw():
    try:
        find_backend()
    except RenderingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def references():
    return References([make_motion(find_clip("wave"))])


def film_of(references, frames=11, upright=None, **settings):
    """A robot that holds the first frame of a clip."""
    piece = Piece("wave", 0, 0, frames)
    still = np.repeat(references.qpos[:1], frames, axis=0)
    upright = np.ones(frames, bool) if upright is None else upright
    nothing = np.zeros((frames, 2, 3)), np.ones((frames, 2), bool)
    tracked = TrackedPiece(piece, still, upright, *nothing)
    config = TrackingFilm(**{**SMALL, **settings})
    return TrackingVideo(piece, lambda: tracked, references, 0.02, config, "title")


# Pictures ---------------------------------------------------------------------------------------


def bluish(picture):
    """Rows and columns of pixels that are much more blue than red, as the ghost's are."""
    blue, red = picture[..., 2].astype(int), picture[..., 0].astype(int)
    return np.argwhere(blue - red > 60)


def draw(ghost=None, **more):
    robot = make_robot("g1-29")
    qpos = make_motion(find_clip("stand")).qpos[0]
    model = picture_model(robot, primitives=True)
    with Renderer(model, robot, width=160, height=120) as renderer:
        shifted = None if ghost is None else qpos + np.array([*ghost, *[0] * 33])
        return renderer.draw(qpos, shifted, **more)


def test_a_ghost_is_translucent_and_where_it_was_put():
    alone = draw()
    left = draw((-0.64, -0.77, 0))  # one metre to the left of the camera's view: azimuth 140
    assert len(bluish(left)) > len(bluish(alone)) + 300
    added = bluish(left)[:, 1]
    assert np.median(added) < 60  # left of the middle, where the robot stands
    right = draw((0.64, 0.77, 0))
    assert np.median(bluish(right)[:, 1]) > 100
    # The robot itself is drawn as before, and the ghost casts no shadow.
    changed = np.argwhere(np.abs(left.astype(int) - alone).sum(-1) > 30)
    assert changed[:, 1].max() < 75
    assert not np.array_equal(draw(look_at=np.array([0.3, 0.0])), alone)


def test_the_overlay_leaves_the_feet_alone_and_shows_falls():
    white = np.full((480, 640, 3), 255, dtype=np.uint8)
    upright = np.array([True] * 50 + [False] * 25)
    picture = TrackingOverlay("title", 640, 480).draw(white, "wave", upright, 100, 1.0).astype(int)
    assert (picture[60:] == 255).all()
    bar = picture[52]
    green, red = ((bar == colour).all(-1).nonzero()[0] for colour in ((46, 139, 87), (200, 69, 46)))
    assert (green.min(), green.max()) == pytest.approx((12, 12 + 308), abs=2)
    assert (red.min(), red.max()) == pytest.approx((12 + 308, 12 + 462), abs=2)


# Films ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ghost", ["beside", "place", "none"])
def test_a_film_has_the_length_of_its_piece(references, ghost):
    film = film_of(references, 81, ghost=ghost)
    pictures = list(film)
    assert (film.rate, len(film), len(pictures)) == (25.0, 41, 41)
    assert pictures[0].shape == (72, 96, 3)
    moved = np.abs(pictures[-1].astype(int) - pictures[0])[20:].sum()  # below the overlay
    assert (moved > 0) == (ghost != "none")  # the robot stands still, the clip does not


def test_what_is_said_is_what_was_measured(references):
    upright = np.arange(101) < 50
    film = film_of(references, 101, upright)
    emd = earth_movers_distance(film.tracked.qpos[:, 7:], references.qpos[:101, 7:])
    assert film.summary() == f"2.0 s, upright 50% of the frames, EMD {emd:.2f} rad"
    assert film.emd(1) == 0.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"condition": "icy"}, "Unknown condition 'icy'"),
        ({"seconds": 0.0}, "--seconds must be above 0"),
        ({"height": 101}, "--height must be even"),
        ({"ghost": "above"}, "--ghost"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        TrackingFilm(**wrong)


# Commands ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("video") / "run")


WORDS = ["--seconds", "0.2", "--width", "96", "--height", "72", "--primitives"]


def test_command_writes_a_video_per_clip_and_keeps_earlier_ones(run, capsys):
    main(["video", str(run), *WORDS, "--condition", "payload"])
    main(["video", str(run), *WORDS, "--condition", "payload", "--clips", "bow"])
    main(["video", str(run), *WORDS, "--condition", "payload", "--clips", "wave"])
    assert capsys.readouterr().out.count("upright 100% of the frames, EMD") == 4
    names = {"bow-payload", "stand-payload", "wave-payload", "wave-payload-2"}
    files = [run / "videos" / f"00000006-{name}.mp4" for name in names]
    assert set((run / "videos").iterdir()) == set(files)
    assert imageio.imread(files[0]).shape == (6, 72, 96, 3)


def error_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main(["video", *map(str, words)])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_several_videos_need_a_folder(run, tmp_path, capsys):
    message = "holds one video, but there are 2 to make; give a folder"
    assert message in error_of(capsys, run, "--out", tmp_path / "film.mp4")
    assert "choose one of: .gif, .mp4" in error_of(capsys, run, "--out", tmp_path / "film.avi")
    assert list(tmp_path.iterdir()) == []
    main(["video", str(run), *WORDS, "--clips", "wave", "--out", str(tmp_path / "film.gif")])
    main(["video", str(run), *WORDS, "--clips", "wave", "--out", str(tmp_path / "films")])
    assert len(imageio.imread(tmp_path / "film.gif")) == 6
    assert [file.name for file in (tmp_path / "films").iterdir()] == ["00000006-wave-nominal.mp4"]


def test_flags_are_those_of_the_domain(run, capsys):
    with pytest.raises(SystemExit):
        main(["video", str(run), "--help"])
    shown = capsys.readouterr().out
    assert "--ghost" in shown
    assert "--command" not in shown
    assert "Unknown condition 'icy'" in error_of(capsys, run, "--condition", "icy")


# During training --------------------------------------------------------------------------------


def test_videos_of_training_leave_no_trace(tmp_path):
    def train(path, every=None):
        config = TRACKING.make_config("tiny", "prism")
        run, trainer = session.start(config, path)
        small = replace(SETTINGS, seconds=0.2, **SMALL)
        said = []
        films = TrackingVideos(path / "videos", trainer, 3, said.append, small) if every else None
        session.train(run, trainer, config.updates, films)
        assert said == []
        return Run.open(path).load().tensors

    plain, filmed = train(tmp_path / "plain"), train(tmp_path / "filmed", every=3)
    names = sorted(file.name for file in (tmp_path / "filmed" / "videos").iterdir())
    assert names == ["00000003.mp4", "00000006.mp4"]
    assert filmed.keys() == plain.keys()
    for name, tensor in plain.items():
        assert torch.equal(filmed[name], tensor), name


def test_videos_are_tried_before_training():
    TRACKING.check_videos()
