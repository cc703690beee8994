"""The demo, small: it trains, evaluates, films, writes its page, and does nothing twice."""

import pytest

from prism_motor.campaigns import demo
from prism_motor.campaigns.demo import DemoConfig, run_demo
from prism_motor.cli import main
from prism_motor.locomotion.config import WalkingEvaluation
from prism_motor.locomotion.video import VideoConfig
from prism_motor.runs import ConfigError
from prism_motor.sim.rendering import RenderingError

TINY = DemoConfig(
    updates=2,
    evaluation=WalkingEvaluation(conditions=("nominal",), seeds=(101,), envs=2, episodes=1),
    video=VideoConfig(seconds=0.2, width=64, height=64),
    overrides={"envs": 8, "ppo.steps": 4, "ppo.epochs": 1, "ppo.minibatches": 2},
)


def test_the_default_is_fair_and_of_the_laptop_preset():
    campaign = DemoConfig().campaign()
    assert campaign.preset == "laptop"
    assert {arm.name for arm in campaign.arms} == {"mlp-matched", "prism"}
    assert not any(arm.overrides for arm in campaign.arms)
    assert campaign.updates == 300  # the same for both
    assert campaign.tuning is None


@pytest.mark.slow
def test_demo_ends_with_a_page_and_reuses_what_is_done(tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    report = run_demo(TINY, out, "prism demo --out <here>")
    assert report.page == out / "report.html"
    source = report.page.read_text()
    assert "prism demo --out &lt;here&gt;" in source
    assert source.count("<video ") == 3
    (chapter,) = report.chapters
    labels = [row[0].text for row in chapter.main.rows]
    assert len(labels) == 3
    assert any(label.startswith("prism") and "1,000 updates" in label for label in labels)
    compared = [subject for subject, _ in chapter.findings]
    # Only the two arms that had the same chance are compared.
    assert compared[0] == "prism, 2 updates against mlp-matched, 2 updates:"

    films = {file: file.stat().st_mtime_ns for file in out.rglob("*.mp4")}
    capsys.readouterr()
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
    assert "<video " not in run_demo(TINY, out).page.read_text()
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
