"""The demo, small: it trains, evaluates, films, writes its page, and does nothing twice."""

from inspect import signature

import pytest

from prism_motor.campaigns import demo
from prism_motor.campaigns.demo import DemoConfig, run_demo
from prism_motor.campaigns.demo_page import describe_command
from prism_motor.cli import main, showcase
from prism_motor.locomotion.config import WalkingEvaluation
from prism_motor.locomotion.video import VideoConfig
from prism_motor.runs import ConfigError
from prism_motor.sim.rendering import RenderingError

TINY = DemoConfig(
    updates=2,
    evaluation=WalkingEvaluation(conditions=("nominal",), seeds=(101,), envs=2, episodes=1),
    videos=(
        VideoConfig(seconds=0.1, width=64, height=64),
        VideoConfig(seconds=0.1, width=64, height=64, command=(0.3, 0.0, 0.5)),
    ),
    overrides={"envs": 8, "ppo.steps": 4, "ppo.epochs": 1, "ppo.minibatches": 2},
)


def test_the_default_is_fair_and_of_the_laptop_preset():
    campaign = DemoConfig().campaign()
    assert campaign.preset == "laptop"
    assert {arm.name for arm in campaign.arms} == {"mlp-matched", "prism"}
    assert not any(arm.overrides for arm in campaign.arms)
    assert campaign.updates == 300  # the same for both
    assert signature(showcase.demo).parameters["updates"].default == campaign.updates
    assert campaign.tuning is None
    assert any(video.command[2] for video in DemoConfig().videos)  # one turns


def test_commands_in_words():
    assert describe_command((0.3, 0.0, 0.5)) == "0.3 m/s ahead, turning left by 0.5 rad/s"
    assert describe_command((0.0, -0.2, 0.0)) == "0.2 m/s to the right"
    assert describe_command((0.0, 0.0, 0.0)) == "0 m/s ahead"
    assert describe_command(None) == "commands as in training"


@pytest.mark.slow
def test_demo_ends_with_a_page_and_reuses_what_is_done(tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    made = run_demo(TINY, out, "prism demo --out <here>")
    assert made.page == out / "index.html"
    printed = capsys.readouterr().out
    assert [f"Step {i} of 4" in printed for i in range(1, 5)] == [True] * 4
    source = made.page.read_text()
    assert "prism demo --out &lt;here&gt;" in source
    titles = [row[0].text for row in made.table.rows]
    assert titles == [
        "MLP, same size, 2 updates",
        "PRISM, 2 updates",
        "MLP, same size, 750 updates",
        "PRISM, 750 updates",
    ]
    assert all(source.count(title) >= 2 for title in titles)
    assert source.count("<video ") == 8  # two each
    assert source.index("<video ") < source.index("<table>")
    assert source.count('<li><span class="name">') == 12  # six products of each PRISM
    assert source.count("<table>") == 1
    assert "interval" not in source  # nothing was tested
    assert "prism play" in source

    films = {file: file.stat().st_mtime_ns for file in out.rglob("*.mp4")}
    assert len(films) == 8
    run_demo(TINY, out)
    printed = capsys.readouterr().out
    assert "2 of 2 runs done" in printed
    assert "Recording" not in printed
    assert "Evaluating" not in printed
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.mp4")} == films

    # Without any way to draw, and without shipped policies, there is still a page.
    for file in films:
        file.unlink()

    def refuse(*_, **__):
        raise RenderingError("no OpenGL here")

    monkeypatch.setattr(demo, "WalkingVideo", refuse)
    monkeypatch.setattr(demo, "shipped_names", list)
    alone = run_demo(TINY, out)
    assert len(alone.table.rows) == 2
    assert "<video" not in alone.page.read_text()
    assert "no OpenGL here" in alone.page.read_text()
    assert "The page has no videos: no OpenGL here" in capsys.readouterr().out

    with pytest.raises(ConfigError, match=r"updates is 2 there and 3"):
        run_demo(DemoConfig(updates=3, overrides=TINY.overrides), out)


def test_bad_input_is_refused_before_anything_starts(tmp_path, capsys):
    for words, message in (
        (["--updates", "0"], "--updates must be from 1"),
        (["--out", "{file}/deeper"], "file"),
    ):
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(SystemExit) as caught:
            main(["demo", *(word.format(file=file) for word in words)])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
