"""The page: its text, what it leaves out, and how it looks in a browser."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from prism_motor.cli import main
from prism_motor.report import attachments, write_report
from prism_motor.report.charts import _log_ticks, _ticks
from prism_motor.report.markdown import escape
from prism_motor.runs import RunError

from .folders import edit_json, study, unseal, write_run

HOSTILE = "<script>alert(1)<"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
    '<rect width="40" height="20"/></svg>'
)


class Page(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.tags, self.links, self.text, self.open = [], [], "", []
        self.feed(source)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "srcset", "poster") and v]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.text += data + " "


def analysis(folder, name="explain", **data):
    folder = folder / "analysis" / name
    folder.mkdir(parents=True)
    (folder / f"{name}.json").write_text(json.dumps(data))
    (folder / f"{name}.svg").write_text(SVG)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A report with everything in it, hostile names included."""
    root = tmp_path_factory.mktemp("report") / "study"
    study(root, conditions=("nominal", "payload"))
    write_run(root / f"late {HOSTILE}", "prism", 4, updates=7)
    table = {"columns": ["product", HOSTILE], "rows": [["q · dq", 0.123456], [HOSTILE, None]]}
    analysis(root, "probe", title=f"Probes {HOSTILE}", caption="Of all arms.", table=table)
    analysis(root / "prism-1", title="Learned products", gains_table=table, caption=HOSTILE)
    (root / "prism-1" / "videos").mkdir()
    (root / "prism-1" / "videos" / "00000020-nominal.gif").write_bytes(GIF)
    report = write_report(root, title=f"Study {HOSTILE}", intro="Why & how.", command="a <b> c")
    return root, report


GIF = bytes.fromhex(
    "4749463839610100010080000000000000ffffff21f90401000000002c00000000010001000002024401003b"
)


def test_page_is_self_contained_and_closed(finished):
    _, report = finished
    source = report.page.read_text()
    page = Page(source)
    assert page.open == []
    assert not {"link", "iframe", "object", "base"} & set(page.tags)
    assert page.links
    assert all(link.startswith(("data:", "#")) for link in page.links)
    assert not re.search(r"url\(|@import|https?://", source)
    assert "default-src 'none'" in source
    assert page.tags.count("script") == 1 + source.count('type="application/json"')


def test_names_from_files_are_escaped(finished):
    _, report = finished
    source = report.page.read_text()
    assert "alert(1)" in source
    assert "<script>alert" not in source
    page = Page(source)
    for place in ("Study ", "Probes ", "late "):
        assert f"{place}{HOSTILE}" in page.text
    assert "a <b> c" in page.text


def test_markdown_holds_no_tags_of_others(finished):
    text = finished[1].markdown.read_text()
    assert "&lt;script>alert(1)" in text
    assert not re.search(r"<[A-Za-z/!?]", text)
    assert escape("p < 0.001, a <b> and </b>") == "p < 0.001, a &lt;b> and &lt;/b>"


def test_markdown_holds_no_links_of_others():
    assert escape("0.13 [0.11, 0.15] (n = 3)") == "0.13 [0.11, 0.15] (n = 3)"
    assert escape("![x](http://a/b.png)") == "![x\\](http://a/b.png)"
    assert escape("[x][y] and [y]: http://a") == "[x\\][y] and [y\\]: http://a"
    assert escape("one\r\n\n# two\u2028three") == "one # two three"


def test_page_says_what_the_numbers_show(finished):
    _, report = finished
    text = Page(report.page.read_text()).text
    assert "7 trainings of 2 arms: 6 finished, 6 of these evaluated." in text
    assert "prism against mlp-matched:" in text
    assert "no difference that these seeds can show" in text
    assert "Why & how." in text
    assert "3 of 4 seeds; 4 at 35%" in text
    assert "Learned products" in text
    assert "0.1235" in text
    assert "Of all arms." in text


def test_numbers_stand_beside_the_page(finished):
    root, report = finished
    data = json.loads(report.data.read_text())
    (section,) = data["sections"]
    prism = next(arm for arm in section["arms"] if arm["name"] == "prism")
    found = prism["conditions"]["nominal"]["linear_error"]
    assert found["n"] == 3
    assert set(found["by_training_seed"]) == {"1", "2", "3"}
    assert found["interval"][0] < found["mean"] < found["interval"][1]
    run = next(run for run in section["runs"] if run["arm"] == "prism")
    assert (run["folder"], len(run["checkpoint_sha256"])) == ("prism-1", 64)
    assert run["config"]["arm"] == "prism"
    claim = section["comparisons"]["plain"][1]
    assert (claim["measure"], claim["outcome"]) == ("linear_error", "better")
    assert data["problems"] == []
    markdown = report.markdown.read_text()
    assert report.markdown == root / "report.md"
    assert "| prism 3 of 4 seeds; 4 at 35% |" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert all(line.endswith(" |") for line in rows)


def test_large_files_are_named_instead_of_shown(tmp_path, monkeypatch):
    write_run(tmp_path / "run", rows={"nominal": [{}]})
    films = tmp_path / "run" / "videos"
    films.mkdir()
    for step in (1, 2, 3):
        (films / f"{step:08d}.mp4").write_bytes(b"x" * 1000 * step)
    monkeypatch.setattr(attachments, "FILE_LIMIT", 2500)
    report = write_report(tmp_path)
    assert report.problems == (
        "run/videos has 1 older video, not shown.",
        "run/videos/00000003.mp4 is not shown: 3 kB is too large.",
    )
    assert report.page.read_text().count("<video ") == 1


def test_unusual_analyses_do_not_break_the_page(tmp_path):
    write_run(tmp_path / "run", rows={"nominal": [{}]})
    analysis(tmp_path, "odd", table={"columns": ["a"], "rows": [[1, 2]]}, title=3)
    broken = analysis(tmp_path, "broken")
    (broken / "broken.json").write_text("{")
    shutil.copy(broken / "broken.svg", broken / "broken.png")  # the same picture twice
    report = write_report(tmp_path)
    assert report.problems == ("analysis/broken/broken.json is not readable JSON.",)
    assert report.page.read_text().count("<img ") == 2


def test_tasks_get_sections_of_their_own(tmp_path):
    study(tmp_path / "g1", seeds=(1, 2))
    write_run(tmp_path / "dog", "prism", preset="quadruped", rows={"nominal": [{}]})
    source = write_report(tmp_path).page.read_text()
    page, text = Page(source), Page(source).text
    assert "on 2 tasks, which are never mixed" in text
    assert "Task: laptop (g1)" in text
    assert "Task: quadruped (quadruped)" in text
    anchors = [link for link in page.links if link.startswith("#")]
    assert len(anchors) == 3  # two tasks, and where the numbers come from
    assert all(f'id="{anchor[1:]}"' in source for anchor in anchors)


def test_the_tuning_of_a_campaign_is_shown(tmp_path):
    write_run(tmp_path / "prism-1", rows={"nominal": [{}]})
    plan = {"arms": [{"name": "prism"}], "seeds": [1]}
    (tmp_path / "campaign.json").write_text(json.dumps(plan))
    tried = [{"setting": {"ppo.learning_rate": rate}, "score": score, "runs": []}
             for rate, score in ((5e-4, 4.0), (1e-3, 5.125))]  # fmt: skip
    sweep = {
        "criterion": "reward",
        "seeds": [901],
        "fraction": 0.35,
        "runs_per_arm": 2,
        "arms": {"prism": {"chosen": tried[1]["setting"], "settings": tried}},
    }
    (tmp_path / "tuning.json").write_text(json.dumps(sweep))
    text = Page(write_report(tmp_path).page.read_text()).text
    assert "prism learning_rate 0.0005 4.00 prism learning_rate 0.001 5.12 chosen" in text
    assert "2 runs of 35 % of the length, on training seeds 901" in text


@pytest.mark.parametrize("rows", [None, {"payload": [{}]}])
def test_runs_without_a_nominal_evaluation_still_give_a_page(tmp_path, rows):
    write_run(tmp_path / "run", rows=rows)
    text = Page(write_report(tmp_path).page.read_text()).text
    assert "not evaluated" in text or "prism eval RUN" in text
    assert "reward per second" in text


def test_runs_that_have_only_begun_still_give_a_page(tmp_path):
    write_run(tmp_path / "run", updates=0)
    report = write_report(tmp_path)
    assert "0 / 20" in Page(report.page.read_text()).text
    assert "neither a complete checkpoint" in report.problems[0]


def error_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main(["report", *map(str, words)])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_mistakes_are_said_in_one_line(tmp_path, capsys):
    assert "No such folder" in error_of(capsys, tmp_path / "nowhere")
    assert "no training run that can be reported" in error_of(capsys, tmp_path)
    write_run(tmp_path / "newer")
    edit_json(tmp_path / "newer" / "config.json", shiny_new_key=1)
    assert "unknown key 'shiny_new_key'" in error_of(capsys, tmp_path)
    write_run(tmp_path / "good")
    assert "must be an .html file" in error_of(capsys, tmp_path, "--out", tmp_path / "page.pdf")
    (tmp_path / "file").touch()
    assert "Cannot write to" in error_of(capsys, tmp_path, "--out", tmp_path / "file" / "a.html")


def test_command_prints_findings_and_paths(tmp_path, capsys):
    study(tmp_path / "runs", seeds=(1, 2, 3))
    main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "new" / "page.html")])
    printed = capsys.readouterr().out
    assert "prism against mlp-matched: over 3 common training seeds" in printed
    assert str(tmp_path / "new" / "page.json") in printed
    command = Page((tmp_path / "new" / "page.html").read_text()).text
    assert f"prism report {tmp_path / 'runs'} --out" in command
    with pytest.raises(RunError):
        write_report(tmp_path / "new")


def test_one_seed_has_no_table_of_differences(tmp_path, capsys):
    study(tmp_path / "runs", seeds=(1,))
    write_run(tmp_path / "runs" / "fresh", "mlp", updates=0)
    main(["report", str(tmp_path / "runs")])
    printed = capsys.readouterr().out
    assert "one common training seed, so no interval: survival" in printed
    assert "1 thing is missing or was left out" in printed
    assert "### Differences" not in (tmp_path / "runs" / "report.md").read_text()
    data = json.loads((tmp_path / "runs" / "report.json").read_text())
    assert len(data["sections"][0]["comparisons"]["plain"]) == 10  # each of two arms


def test_a_robot_that_is_not_known_here_does_not_stop_the_report(tmp_path):
    write_run(tmp_path / "known", rows={"nominal": [{}]})
    write_run(tmp_path / "foreign", rows={"nominal": [{}]})
    file = tmp_path / "foreign" / "config.json"
    data = json.loads(file.read_text())
    data["task"]["robot"] = "hopper"
    file.write_text(json.dumps(data))
    unseal(tmp_path / "foreign")
    report = write_report(tmp_path)
    assert any("foreign" in problem and "hopper" in problem for problem in report.problems)
    assert "known" in report.page.read_text()


def test_importing_reports_loads_no_simulator_and_no_physics():
    code = (
        "import sys, prism_motor.report.write; "
        "print([m for m in sys.modules if m.split('.')[0] in ('mujoco', 'lerobot', 'matplotlib') "
        "or m.startswith(('prism_motor.sim', 'prism_motor.studies', 'prism_motor.analysis'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_axes_have_round_numbers():
    assert _ticks(0.0, 5.8, 5) == [0.0, 2.0, 4.0]
    assert _ticks(0.12, 0.31, 5) == [0.15, 0.2, 0.25, 0.3]
    assert _log_ticks(0.6, 90.0) == [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_in_a_browser_nothing_fails_and_everything_is_seen(finished, width, scheme):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    _, report = finished
    said, asked = [], []
    with playwright.sync_playwright() as play:
        opened = play.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"], timeout=120_000
        )
        page = opened.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.set_default_timeout(120_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append("a dialog opened"), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.page.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        images = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
        charts = page.evaluate(
            "[...document.querySelectorAll('.chart svg')].map(s => { const b = "
            "s.getBoundingClientRect(); return [b.width, b.height, s.querySelectorAll("
            "'.line').length] })"
        )
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        chart = page.locator(".chart svg").first
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip = page.locator(".tip").first
        shown = tip.is_visible(), tip.inner_text()
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        opened.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "file:"))] == []
    assert len(images) == 3
    assert all(images)
    assert len(charts) == 6
    assert all(width > 250 and height > 150 and lines == 3 for width, height, lines in charts)
    assert overflow <= 0
    assert shown[0]
    assert "prism" in shown[1]
    assert "million samples" in shown[1]
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
