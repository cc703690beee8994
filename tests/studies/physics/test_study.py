"""The whole demo on a tiny configuration, through worker processes."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from prism_motor.cli import main
from prism_motor.studies.physics import training
from prism_motor.studies.physics.config import QUICK, PhysicsConfig
from prism_motor.studies.physics.page import render_physics
from prism_motor.studies.physics.results import PhysicsResults
from prism_motor.studies.physics.robot import TARGETS
from prism_motor.studies.physics.study import run_physics
from prism_motor.studies.physics.summary import summarise

from .conftest import TINY


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("physics")
    page = run_physics(TINY, out, "prism physics --seeds 2 <&>")
    return out, page


def numbers(out):
    jobs = json.loads((out / "results.json").read_text())["jobs"]
    return {key: {k: v for k, v in job.items() if k != "seconds"} for key, job in jobs.items()}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.links, self.text = [], [], [], ""
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.links += [v for k, v in attributes.items() if k in ("src", "href", "srcset") and v]
        if tag == "img":
            self.images.append(attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_results_hold_every_run_and_how_it_was_made(finished):
    out, _ = finished
    results = json.loads((out / "results.json").read_text())
    assert len(results["jobs"]) == 2 * (len(TINY.learning_rates) + TINY.seeds)
    assert set(results["chosen_learning_rates"]) == {"mlp-matched", "prism"}
    assert set(results["chosen_learning_rates"].values()) <= set(TINY.learning_rates)
    assert results["config"]["updates"] == TINY.updates
    assert {"prism", "torch", "mujoco", "python"} <= set(results["versions"])
    assert results["wall_seconds"] > 0
    reported = {job["seed"] for job in results["jobs"].values()}
    assert reported == {0, 1, 2}  # 0 is the tuning seed
    assert not list(out.glob("*.tmp"))


def test_a_second_start_reuses_finished_runs_and_fills_gaps(finished, tmp_path, capsys):
    out, _ = finished
    stored = json.loads((out / "results.json").read_text())
    lost = next(key for key in stored["jobs"] if key.startswith("prism/seed2"))
    del stored["jobs"][lost]
    (tmp_path / "results.json").write_text(json.dumps(stored))
    run_physics(replace(TINY, workers=2), tmp_path)
    assert "reported seeds: 1/1" in capsys.readouterr().out  # only the missing one ran
    # The same numbers as in the first run, by another process: the study is deterministic.
    assert numbers(tmp_path) == numbers(out)


def test_results_with_former_names_of_arms_are_read(finished, tmp_path):
    out, _ = finished
    stored = json.loads((out / "results.json").read_text())
    former = {"mlp-matched": "mlp", "prism": "prism2"}
    for key in list(stored["jobs"]):
        arm, _, rest = key.partition("/")
        entry = stored["jobs"].pop(key)
        stored["jobs"][f"{former[arm]}/{rest}"] = {**entry, "arm": former[arm]}
    (tmp_path / "results.json").write_text(json.dumps(stored))
    assert PhysicsResults(tmp_path, TINY).jobs.keys() == numbers(out).keys()


def test_a_quick_page_says_that_its_numbers_mean_nothing(finished):
    out, path = finished
    assert "These numbers mean nothing" not in path.read_text()  # of other settings than --quick
    assert QUICK.quick
    assert replace(QUICK, seeds=3, arms=("prism",), workers=1).quick
    assert not PhysicsConfig().quick
    results = PhysicsResults(out, TINY)
    results.chosen = json.loads((out / "results.json").read_text())["chosen_learning_rates"]
    summaries = summarise(TINY, results)
    pictures = dict.fromkeys((*(t.name for t in TARGETS), "strobe", "curves"), b"<svg></svg>")
    page = render_physics(QUICK, results, summaries, pictures, "prism physics --quick")
    assert "<b>These numbers mean nothing.</b>" in page


def test_other_settings_start_anew_and_keep_the_old_file(finished, tmp_path):
    out, _ = finished
    before = (out / "results.json").read_text()
    for content in (before, before[: len(before) // 2]):  # of another study, or damaged
        (tmp_path / "results.json").write_text(content)
        assert PhysicsResults(tmp_path, replace(TINY, updates=10)).jobs == {}
        assert (tmp_path / "results.previous.json").read_text() == content
        assert not (tmp_path / "results.json").exists()


def test_fewer_arms_and_more_seeds_keep_finished_runs(finished, tmp_path):
    out, _ = finished
    (tmp_path / "results.json").write_text((out / "results.json").read_text())
    assert PhysicsResults(tmp_path, replace(TINY, seeds=9)).jobs.keys() == numbers(out).keys()
    # A page without PRISM leaves its sections out instead of failing.
    source = run_physics(replace(TINY, arms=("mlp-matched",)), tmp_path).read_text()
    assert "What PRISM" not in source
    assert "Ungated product" not in source


def test_page_is_self_contained(finished):
    out, path = finished
    page = Page(path.read_text())
    assert path == out / "index.html"
    assert page.open == []
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert page.links
    assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
    assert all(image["alt"] for image in page.images)
    assert not re.search(r"url\(|@import", path.read_text())
    for link in page.links:
        picture = base64.b64decode(link.split(",")[1]).decode()
        assert picture.rstrip().endswith("</svg>")
        assert not re.search(r'(?:href|src)="(?!#|data:)', picture)
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_page_says_what_was_done(finished):
    _, path = finished
    text = " ".join(Page(path.read_text()).text.split())
    assert "PRISM degree 2 against MLP:" in text
    assert "prism physics --seeds 2 <&>" in text  # escaped in the source, whole for the reader
    assert "3 training, 2 validation and 2 test episodes" in text
    assert "tau_2" in text


def test_names_are_escaped(finished, tmp_path, monkeypatch):
    out, _ = finished
    (tmp_path / "results.json").write_text((out / "results.json").read_text())
    hostile = tuple(
        replace(c, label="<script>alert(1)</script>") if c.name == "mlp-matched" else c
        for c in training.ARMS
    )
    monkeypatch.setattr(training, "ARMS", hostile)
    source = run_physics(TINY, tmp_path).read_text()
    assert "<script" not in source
    assert "&lt;script&gt;alert(1)" in source


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "1"), "--seeds must be from 2 to 1000, got 1"),
        (("--arms", "mpl"), "Unknown arm 'mpl'"),
        (("--arms", "mlp-large"), "no arm of the common budget"),
        (("--out", "{file}/deeper"), "Cannot write to the output folder"),
    ],
)
def test_bad_input_is_refused_before_the_simulation(tmp_path, capsys, words, message):
    file = tmp_path / "file"
    file.touch()
    words = [word.format(file=file) for word in words]
    if "--out" not in words:
        words += ["--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as end:
        main(["physics", "--quick", *words])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "simulating" not in printed.out
    assert not (tmp_path / "out" / "results.json").exists()


def test_interrupt_ends_cleanly_and_keeps_finished_runs(tmp_path):
    words = ["physics", "--quick", "--arms", "mlp", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "prism_motor.cli", *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    stored = tmp_path / "results.json"
    deadline = time.monotonic() + 60
    while not stored.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Finished runs are kept" in errors
    assert "Traceback" not in errors
    assert json.loads(stored.read_text())["jobs"]
