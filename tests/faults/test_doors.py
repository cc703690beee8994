"""Data and clients from elsewhere: viewers, archives, pickles, links and names that mean harm."""

import contextlib
import io
import json
import os
import pickle
import random
import re
import shutil
import tarfile
import threading
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
import viser
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from prism_motor._checks import InputError
from prism_motor.cli import main
from prism_motor.manipulation.demonstrations.recording import load_demonstration
from prism_motor.manipulation.suites.libero.archives import unpack
from prism_motor.manipulation.suites.libero.states import StatesError, read_states
from prism_motor.report.markdown import escape
from prism_motor.report.write import write_report
from prism_motor.runs.shipped import shipped_names
from prism_motor.viewer.app import App
from prism_motor.viewer.walking.loading import load_walkers
from prism_motor.viewer.walking.session import Session
from prism_motor.viewer.walking.show import WalkingShow
from tests.faults.sizes import cases
from tests.report.folders import study, unseal
from tests.viewer.clients import CAMERA, Client, wait_until

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def fuzzed(smoke, full):
    """Settings of a fuzz: the same cases every time."""
    return settings(
        max_examples=cases(smoke, full), deadline=None, derandomize=True, database=None,
        suppress_health_check=QUIET,
    )  # fmt: skip


# Clients of the viewer ----------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KINDS = sorted(
    kind.__name__ for kind in viser._messages.Message.get_subclasses() if kind.__module__
)


@pytest.fixture(scope="module")
def app():
    if "g1-prism" not in shipped_names():
        pytest.skip("g1-prism is not shipped with this version")
    ((walker, top),) = load_walkers([Path("g1-prism")])
    app = App(WalkingShow(Session([walker], (0.4, 0.0, 0.0)), [top]), port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    alive = thread.is_alive()
    app.stop()
    thread.join()
    assert alive


@pytest.fixture(scope="module")
def client(app):
    with Client(app) as client:
        client.send(CAMERA)
        yield client


def check_controls(app):
    for control in app.server.gui._gui_input_handle_from_uuid.values():
        value = control.value
        if isinstance(control, viser.GuiSliderHandle):
            assert isinstance(value, float)
            assert control.min <= value <= control.max
        elif isinstance(control, viser.GuiCheckboxHandle | viser.GuiButtonHandle):
            assert isinstance(value, bool)
        else:
            assert value in control.options


@fuzzed(150, 1500)
@given(data=st.data())
def test_no_message_harms_the_viewer(app, client, data):
    """Any value for any attribute of any control, any message of viser, and bytes at random."""
    controls = sorted(app.server.gui._gui_input_handle_from_uuid)
    update = st.fixed_dictionaries({
        "type": st.just("GuiUpdateMessage"),
        "uuid": st.sampled_from(controls) | ANYTHING,
        "updates": st.dictionaries(
            st.just("value") | st.sampled_from(sorted(vars(app.show.panel.view.speed._impl))),
            ANYTHING,
        ) | ANYTHING,
    })  # fmt: skip
    camera = st.sampled_from(sorted(CAMERA)).flatmap(
        lambda field: ANYTHING.map(lambda value: CAMERA | {field: value})
    )
    other = st.dictionaries(st.text(max_size=8), ANYTHING).flatmap(
        lambda fields: st.sampled_from(KINDS).map(lambda kind: {**fields, "type": kind})
    )
    client.send(data.draw(update | camera | other | st.binary(max_size=64) | st.text(max_size=8)))
    check_controls(app)


def test_the_viewer_lives_on(app, client):
    payload = app.show.panel.disturb.payload
    for value in (0.5, 0.6):
        client.set(payload, value)
        wait_until(lambda value=value: payload.value == value)
    client.set(app.show.panel.view.paused, False)
    time = app.show.session.time
    wait_until(lambda: app.show.session.time > time + 0.2)
    check_controls(app)
    assert app.server._share_tunnel is None


# Archives -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("scenes/a.xml", "articulated_objects/b.xml"):
            made.writestr(name, "<mujoco/>" * 9)
    for kind in ("", "gz", "xz", "bz2"):
        with tarfile.open(folder / f"a.tar{kind}", f"w:{kind}") as made:
            for name in ("scenes/a.xml", "articulated_objects/b.xml"):
                info = tarfile.TarInfo(name)
                info.size = 81
                made.addfile(info, io.BytesIO(b"<mujoco/>" * 9))
    return [file.read_bytes() for file in sorted(folder.iterdir())]


def mutate(whole, rng):
    """Change, remove or insert a few bytes, or cut the rest off."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.randint(1, 8)]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randint(1, 8))
        else:
            del data[place:]
    return bytes(data)


def test_no_archive_leads_out_or_raises_anything_else(archives, tmp_path):
    rng = random.Random(1)
    around = tmp_path / "around"
    for _ in range(cases(200, 4000)):
        inside = around / "inside"
        inside.mkdir(parents=True)
        (tmp_path / "a").write_bytes(mutate(rng.choice(archives), rng))
        with contextlib.suppress(InputError):
            unpack(tmp_path / "a", inside)
        assert [entry.name for entry in around.iterdir()] == ["inside"]
        assert not any(path.is_symlink() for path in inside.rglob("*"))
        shutil.rmtree(around)


# Pickles ------------------------------------------------------------------------------------------


class Harm:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_no_pickle_is_run(tmp_path):
    trace, file = tmp_path / "trace", tmp_path / "a"
    states = np.random.default_rng(0).normal(size=(4, 6))
    sources = []
    for thing in (states, Harm(trace), [states, Harm(trace)], {"a": Harm(trace)}):
        for zipped in (True, False):
            stream = io.BytesIO()
            torch.save(thing, stream, _use_new_zipfile_serialization=zipped)
            sources.append(stream.getvalue())
        sources.append(pickle.dumps(thing, protocol=2))
    rng = random.Random(1)
    changed = (mutate(rng.choice(sources), rng) for _ in range(cases(150, 3000)))
    for data in [*sources, *changed]:
        file.write_bytes(data)
        try:
            found = read_states(file)
        except StatesError:
            continue
        assert isinstance(found, np.ndarray)
        assert found.ndim == 2
    assert not trace.exists()


def test_no_demonstration_is_unpickled(tmp_path):
    trace, file = tmp_path / "trace", tmp_path / "a.npz"
    np.savez(file, states=np.array([Harm(trace)], dtype=object))
    whole = file.read_bytes()
    np.savez(file, states=np.zeros((2, 3)), objects=np.zeros((2, 3)), actions=np.zeros((2, 3)))
    good = file.read_bytes()
    rng = random.Random(1)
    for data in [whole, *(mutate(rng.choice([whole, good]), rng) for _ in range(cases(100, 2000)))]:
        file.write_bytes(data)
        with contextlib.suppress(InputError):
            load_demonstration(file)
    assert not trace.exists()


# Links --------------------------------------------------------------------------------------------

SECRET = "the-secret-of-somebody-else"


@pytest.fixture
def linked(tmp_path):
    """A comparison of which every kind of file is somewhere replaced by a link to the outside."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    study(root, arms=("mlp-matched", "prism"), seeds=(1, 2))
    study(outside, arms=("mlp-matched",), seeds=(7,))
    (strange,) = [file.parent for file in outside.rglob("config.json")]
    for name in ("secret.md", "secret.png", "secret.mp4"):
        (outside / name).write_text(SECRET)
    for name in ("secret.json", "tuning.json"):
        (outside / name).write_text(json.dumps({"title": SECRET, "secret": SECRET}))
    runs = sorted(file.parent for file in root.rglob("config.json"))
    unseal(runs[0])  # whose metrics would be refused as changed
    (root / "elsewhere").symlink_to(strange)
    (runs[0] / "metrics.jsonl").unlink()
    (runs[0] / "metrics.jsonl").symlink_to(strange / "metrics.jsonl")
    for folder in ("videos", "analysis"):
        (runs[1] / folder).mkdir()
    (runs[1] / "videos" / "a.mp4").symlink_to(outside / "secret.mp4")
    (runs[1] / "analysis" / "probe").symlink_to(outside)
    (runs[2] / "analysis" / "probe").mkdir(parents=True)
    (runs[2] / "analysis" / "probe" / "a.json").symlink_to(outside / "secret.json")
    (runs[2] / "analysis" / "probe" / "a.png").symlink_to(outside / "secret.png")
    shutil.rmtree(runs[3] / "evaluations")
    (runs[3] / "evaluations").symlink_to(strange / "evaluations")
    (root / "report.md").symlink_to(outside / "secret.md")
    links = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_symlink()]
    return root, links


def test_a_report_names_the_links_and_takes_nothing_in(linked, tmp_path):
    root, links = linked
    report = write_report(root, tmp_path / "page.html")
    for link in links:
        if link != "report.md":  # which is written here, not read
            assert f"{link} is left out: it is a link that leads out" in str(report.problems)
    for file in (report.page, report.data, report.markdown):
        assert SECRET not in file.read_text()
    seeds = [run["training_seed"] for section in json.loads(report.data.read_text())["sections"]
             for run in section["runs"]]  # fmt: skip
    assert sorted(seeds) == [1, 1, 2, 2]


def test_an_archive_names_the_links_and_takes_nothing_in(linked, tmp_path, capsys):
    root, links = linked
    main(["archive", str(root), "--out", str(tmp_path / "kept")])
    said = capsys.readouterr().out
    for link in links:
        if "videos" not in link:  # which are never taken
            assert f"{link} is left out: it is a link that leads out" in said
    for file in (tmp_path / "kept").rglob("*"):
        assert not file.is_symlink()
        assert not file.is_file() or SECRET not in file.read_text()


def test_folders_reached_through_a_link_are_read_as_before(tmp_path):
    study(tmp_path / "root", seeds=(1, 2))
    (tmp_path / "given").symlink_to(tmp_path / "root")
    direct = write_report(tmp_path / "root", tmp_path / "a.html", title="x")
    linked = write_report(tmp_path / "given", tmp_path / "b.html", title="x")
    assert linked.problems == direct.problems
    assert linked.markdown.read_text() == direct.markdown.read_text()


# Names --------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, source):
        super().__init__()
        self.found = set()
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        self.found.update(name for name, _ in attributes if name.startswith("on"))


HARM = st.text(max_size=12) | st.sampled_from([
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "<!--", "-->",
    "<svg/onload=x>", '"><iframe>', "{{ 7 * 7 }}", "![](http://x/y)", "[a](javascript:x)",
    "\n\n# x\n<b>", "`", "|", "]]>", "&lt;b&gt;", "\u2028<i>", "\\",
])  # fmt: skip


@fuzzed(300, 5000)
@given(text=st.lists(HARM, max_size=5).map("".join))
@example("]\\[(")
def test_no_text_becomes_markup_in_markdown(text):
    line = escape(text)
    assert not re.search(r"<[A-Za-z/!?]", line)
    assert not re.search(r"(?<!\\)\][(\[:]", line)
    assert len(line.splitlines()) <= 1


def test_no_name_becomes_markup_in_a_report(tmp_path):
    rng = random.Random(1)
    harm = [
        "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", '"><iframe src=x>',
        "{{ 7 * 7 }}", "![](http://x/y)", "\n\n<b>x</b>", "<svg onload=x>",
    ]  # fmt: skip
    root = tmp_path / "root"
    study(root, seeds=(1, 2))
    probe = root / "analysis" / "probe"
    probe.mkdir(parents=True)
    table = {"columns": ["a", "b"], "rows": [["c", "d"]]}
    notes = {"title": "x", "caption": "x", "table": table}
    (probe / "probe.json").write_text(json.dumps(notes))
    plain = write_report(root, tmp_path / "plain.html", title="x", intro="x")
    allowed = Tags(plain.page.read_text()).found
    for number in range(cases(3, 40)):
        texts = iter(rng.choices(harm, k=100))
        for file in root.rglob("provenance.json"):
            data = json.loads(file.read_text())
            file.write_text(json.dumps({key: next(texts) for key in data} | {"command": []}))
        table = {"columns": [next(texts), next(texts)], "rows": [[next(texts), next(texts)]]}
        notes = {"title": next(texts), "caption": next(texts), "table": table}
        (probe / "probe.json").write_text(json.dumps(notes))
        title = "{{ 7 * 7 }} " + next(texts)
        report = write_report(root, tmp_path / f"{number}.html", title=title, intro=next(texts))
        page = report.page.read_text()
        assert Tags(page).found <= allowed
        assert "{{ 7 * 7 }}" in page  # and not 49
        assert not re.search(r"<[A-Za-z/!?]", report.markdown.read_text())
