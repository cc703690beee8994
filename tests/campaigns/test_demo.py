"""The demo, small: it trains, evaluates, films, writes its page, and does nothing twice."""

import pytest

from prism_motor.campaigns import demo
from prism_motor.campaigns.config import Evaluation
from prism_motor.campaigns.demo import DemoConfig, run_demo
from prism_motor.cli import main
from prism_motor.locomotion.video import VideoConfig
from prism_motor.runs import ConfigError
from prism_motor.sim.rendering import RenderingError

TINY = DemoConfig(
    updates=2,
    evaluation=Evaluation(("nominal",), (101,), envs=2, episodes=1),
    film=VideoConfig(seconds=0.2, width=64, height=64),
    overrides={"envs": 8, "ppo.steps": 4, "ppo.epochs": 1, "ppo.minibatches": 2},
)


def test_the_default_is_fair_and_of_the_laptop_preset():
    campaign = DemoConfig().campaign()
    assert campaign.preset == "laptop"
    assert {arm.name for arm in campaign.arms} == {"mlp-larger", "gated"}
    assert not any(arm.overrides for arm in campaign.arms)
    assert campaign.iterations == 300  # the same for both
    assert campaign.tuning is None


@pytest.mark.slow
def test_demo_ends_with_a_page_and_reuses_what_is_done(tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    report = run_demo(TINY, out, "prism demo --out <here>")
    assert report.page == out / "report.html"
    source = report.page.read_text()
    assert "prism demo --out &lt;here&gt;" in source
    assert source.count("<video ") == 3
    (results,) = report.results
    labels = [arm.label for arm in results.section.arms]
    assert any(label.startswith("gated") and "1,000 updates" in label for label in labels)
    assert len(results.claims["nominal"]) == 5  # the two arms that had the same chance
    assert all(results.scores[label, "nominal", "survived"] for label in labels)

    films = {file: file.stat().st_mtime_ns for file in out.rglob("*.mp4")}
    capsys.readouterr()
    run_demo(TINY, out)
    printed = capsys.readouterr().out
    assert "2 of 2 runs done" in printed
    assert "Filming" not in printed
    assert "Evaluating" not in printed
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.mp4")} == films

    # Without any way to draw, and without shipped policies, there is still a page.
    for file in films:
        file.unlink()

    def refuse(*_, **__):
        raise RenderingError("no OpenGL here")

    monkeypatch.setattr(demo, "Film", refuse)
    monkeypatch.setattr(demo, "shipped_names", list)
    assert "<video " not in run_demo(TINY, out).page.read_text()
    assert "The page has no films: no OpenGL here" in capsys.readouterr().out

    with pytest.raises(ConfigError, match=r"iterations is 2 there and 3"):
        run_demo(DemoConfig(updates=3, overrides=TINY.overrides), out)


def test_bad_input_is_refused_before_anything_starts(tmp_path, capsys):
    for words, message in (
        (["--updates", "0"], "--updates must be at least 1"),
        (["--out", "{file}/deeper"], "file"),
    ):
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(SystemExit) as caught:
            main(["demo", *(word.format(file=file) for word in words)])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
