"""Videos made while training: they leave no trace in the run, and they never end it."""

import signal
import sys
from dataclasses import replace

import imageio.v3 as imageio
import pytest
import torch

from prism_motor.cli import main
from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.training_videos import SETTINGS, WalkingVideos
from prism_motor.runs import Run
from prism_motor.sim.rendering import RenderingError, find_backend
from prism_motor.train import session

TINY = replace(SETTINGS, seconds=0.2, width=64, height=64)


@pytest.fixture(autouse=True)
def _can_draw():
    try:
        find_backend()
    except RenderingError as error:
        pytest.skip(str(error))


def small():
    config = make_config("laptop", "prism", seed=3)
    ppo = replace(config.ppo, steps=4, epochs=1, minibatches=2)
    return replace(config, ppo=ppo, envs=4, checkpoint_every=3, updates=4)


def train(path, every=None, settings=TINY):
    """Train four updates; return what was said about films."""
    run, trainer = session.start(small(), path)
    said = []
    films = WalkingVideos(path / "videos", trainer, every, said.append, settings) if every else None
    session.train(run, trainer, 4, films)
    return said


def final(path):
    return Run.open(path).load().tensors


def names(path):
    folder = path / "videos"
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("films") / "plain"
    train(path)
    return final(path)


def test_films_appear_and_the_run_is_bit_identical_to_one_without(plain, tmp_path):
    assert train(tmp_path / "run", every=2) == []
    assert names(tmp_path / "run") == ["00000002.mp4", "00000004.mp4"]
    pictures = imageio.imread(tmp_path / "run" / "videos" / "00000004.mp4")
    assert pictures.shape == (5, 64, 64, 3)
    after = final(tmp_path / "run")
    assert after.keys() == plain.keys()  # networks, optimiser, environments, random numbers
    for name, tensor in plain.items():
        assert torch.equal(after[name], tensor), name


def test_a_film_that_fails_is_reported_and_training_goes_on(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    find_backend.cache_clear()
    try:
        said = train(tmp_path / "run", every=2)
    finally:
        find_backend.cache_clear()
    assert len(said) == 2
    assert said[0].startswith("No video of update 2: Cannot draw with MUJOCO_GL=nonsense")
    assert names(tmp_path / "run") == []
    assert torch.equal(final(tmp_path / "run")["torch_rng"], plain["torch_rng"])


def test_a_film_cut_in_the_middle_leaves_training_able_to_train(plain, tmp_path, monkeypatch):
    def full_disk(file, pictures, rate):
        next(pictures)
        raise OSError("No space left on device.")

    monkeypatch.setattr("prism_motor.train.videos.write_video", full_disk)
    said = train(tmp_path / "run", every=1)
    assert len(said) == 4
    assert not torch.is_inference_mode_enabled()
    after = final(tmp_path / "run")
    for name, tensor in plain.items():
        assert torch.equal(after[name], tensor), name


def test_ctrl_c_while_filming_saves_and_resumes_exactly(plain, tmp_path):
    run, trainer = session.start(small(), tmp_path / "run")

    def interrupt(row):
        if row["update"] == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        session.train(run, trainer, 4, interrupt)
    assert run.steps()[-1] == 2  # the update that was being filmed is whole
    run, trainer = session.resume(tmp_path / "run")
    session.train(run, trainer, 4)
    assert [row["update"] for row in run.metrics()] == [1, 2, 3, 4]
    after = final(tmp_path / "run")
    for name, tensor in plain.items():
        assert torch.equal(after[name], tensor), name


# Command ----------------------------------------------------------------------------------------

WORDS = ["train", "locomotion", "--envs", "4", "--ppo.steps", "4", "--ppo.minibatches", "1"]


def error_of(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_what_is_missing_is_known_before_the_run_folder_is_made(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    words = [*WORDS, "--out", str(out), "--video-every", "1"]
    assert "--video-every must be from 1 to 1e9, got 0" in error_of([*words[:-1], "0"], capsys)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    find_backend.cache_clear()
    try:
        assert "libosmesa6" in error_of(words, capsys)
    finally:
        find_backend.cache_clear()
    assert not out.exists()


def test_command_films_new_and_resumed_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(WalkingVideos.__init__, "__defaults__", (TINY,))
    out = str(tmp_path / "run")
    main([*WORDS, "--updates", "2", "--out", out, "--video-every", "2"])
    assert names(tmp_path / "run") == ["00000002.mp4"]
    main(["train", "--resume", out, "--updates", "3", "--video-every", "1"])
    assert names(tmp_path / "run") == ["00000002.mp4", "00000003.mp4"]
