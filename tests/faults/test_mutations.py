"""Every file of a run folder, damaged or altered in every way, and then read by every command."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_motor.cli import main
from prism_motor.train import session
from tests.faults.commands import Ended
from tests.faults.mutations import MUTATIONS, meaning
from tests.faults.results import difference, episodes
from tests.faults.sizes import ALL, fuzz
from tests.faults.tally import RIGHT, SILENT, TRACEBACK, WRONG
from tests.faults.tiny import evaluate_words, make_small
from tests.train.cases import CASES

pytestmark = pytest.mark.slow

COMMANDS = {
    "done": ("eval", "report", "verify", "archive", "resume", *(("export",) if ALL else ())),
    "half": ("resume", "resume", "verify", "eval"),
}
"""What is called on a finished run, and on one that is half done."""
COVERED = ("config.json", "provenance.json", "metrics.jsonl", "checkpoints", "evaluations")
"""What the hashes of a run cover."""


def call(*words):
    """Call ``prism`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(tuple(map(str, words)), code, out.getvalue(), err.getvalue())


class Bench:
    """Runs to be damaged, in one folder; what every command makes of intact ones."""

    def __init__(self, domain, folder):
        self.domain, self.folder = domain, folder
        self.run = folder / "run"
        self.whole = folder / "whole"
        config = make_small(domain, updates=4)
        session.train(*session.start(config, self.whole))
        shutil.copytree(self.whole, folder / "done")
        assert call(*evaluate_words(domain, folder / "done")).code == 0
        run, trainer = session.start(config, folder / "half")
        session.train(run, trainer, 2)
        assert call(*evaluate_words(domain, folder / "half")).code == 0
        self.remark = ""
        self.intact = {}
        for state, commands in COMMANDS.items():
            for command in commands:
                self.prepare(state)
                ended = self.call(command)
                self.intact[state, command] = ended, self.result(command, ended)

    def prepare(self, state):
        """Put an intact run in place."""
        for path in (self.run, self.folder / "archive"):
            shutil.rmtree(path, ignore_errors=True)
        for file in self.folder.glob("run-linked*"):
            file.unlink()
        shutil.copytree(self.folder / state, self.run)

    def files(self, state):
        """Return the files of a run, each kind as likely as the other."""
        root = self.folder / state
        groups = {}
        for file in sorted(root.rglob("*")):
            if file.is_file():
                name = file.relative_to(root)
                groups.setdefault((name.parts[0], name.name), []).append(name)
        return list(groups.values())

    def call(self, command):
        """Call a command on the run."""
        words = {
            "eval": evaluate_words(self.domain, self.run),
            "resume": ("train", "--resume", self.run),
            "archive": ("archive", self.run, "--out", self.folder / "archive"),
        }
        return call(*words.get(command, (command, self.run)))

    def result(self, command, ended):
        """Return all that counts of what a command made."""
        if command == "eval":
            table = ended.out.partition(f"\n{self.run}: ")[2]
            wanted = {f"{name}-101.json" for name in CASES[self.domain].conditions}
            found = episodes(self.run)
            return table, {name: one for name, one in found.items() if name in wanted}
        if command == "resume":
            return difference(self.run, self.whole)
        if command == "report":
            page = (self.run / "report.html").read_text()
            data = json.loads((self.run / "report.json").read_text())
            return data["sections"], re.sub(r"Page made [^<]*", "", page), data["problems"]
        if command == "archive":
            root = self.folder / "archive"
            return {str(p.relative_to(root)): meaning(p) for p in root.rglob("*") if p.is_file()}
        if command == "export":
            return exported(self.run)
        return ended.code

    def told(self, state, command, changed, ended):
        """Return whether a command, or a check of what it made, names a file that was changed."""
        if command == "report":
            known = self.intact[state, command][1][2]
            return bool(set(self.result(command, ended)[2]) - set(known))
        text = ended.text
        if command in ("resume", "archive"):
            made = self.folder / "archive" if command == "archive" else self.run
            text += call("verify", made).text
        names = {one.name for one in changed}
        names |= {one.parent.name for one in changed if "checkpoints" in one.parts}
        return any(name in text for name in names)


def exported(run):
    """Return what an export does and says: of walking, or a pretrained policy of LeRobot."""
    if (run / "pretrained").is_dir():
        return {file.name: meaning(file) for file in sorted((run / "pretrained").iterdir())}
    import onnxruntime

    session = onnxruntime.InferenceSession(run / "export" / "policy.onnx")
    entry = session.get_inputs()[0]
    given = np.linspace(-1, 1, entry.shape[-1], dtype=np.float32)[None]
    (action,) = session.run(None, {entry.name: given})
    return action.tobytes(), lasting(json.loads((run / "export" / "contract.json").read_text()))


def lasting(data):
    """Drop from a contract when it was exported, and hashes over that."""
    if not isinstance(data, dict):
        return data
    return {k: lasting(v) for k, v in data.items() if k != "exported" and "sha256" not in k}


@pytest.fixture(scope="module", params=["locomotion", *(["manipulation"] if ALL else [])])
def bench(request, tmp_path_factory):
    patch = CASES[request.param].setup()
    folder = tmp_path_factory.mktemp("bench")
    patch.chdir(folder)
    yield Bench(request.param, folder)
    patch.undo()


def test_intact_runs_verify(bench):
    for state in COMMANDS:
        ended, code = bench.intact[state, "verify"]
        assert code == 0, ended


def test_a_mutated_run_is_refused_or_right_or_named(bench, tally):
    @fuzz(150, 1200)
    @given(data=st.data())
    def mutate(data):
        state = data.draw(st.sampled_from(sorted(COMMANDS)))
        name = data.draw(st.sampled_from(data.draw(st.sampled_from(bench.files(state)))))
        file = bench.folder / state / name
        chosen = data.draw(st.sampled_from([one for one in MUTATIONS if one.suits(file)]))
        command = data.draw(st.sampled_from(COMMANDS[state]))
        bench.prepare(state)
        before = contents(bench.run)
        rows = (bench.run / "metrics.jsonl").read_bytes()
        what = chosen.apply(bench.run / name, data.draw)
        if keeps_rows(bench.run / "metrics.jsonl", rows):
            before[Path("metrics.jsonl")] = meaning(bench.run / "metrics.jsonl")
        after = contents(bench.run)
        changed = {one for one in before if before[one] != after.get(one)}
        if evaluations_of(before) == evaluations_of(after):  # their names say nothing
            changed = {one for one in changed if one.parts[0] != "evaluations"}
        absent = changed == {name} and name.parts[0] == "evaluations" and name not in after
        ended = bench.call(command)
        bench.remark = ""
        if command == "verify":
            outcome = judge_verify(changed, absent, ended)
        else:
            outcome = judge(bench, state, command, {name, *changed}, absent, ended)
        where = f"{command} of a {state} run, {name}, {chosen.name} {what}"
        tally.note(f"mutations, {command}", outcome, f"{where}\n{ended}{bench.remark}")

    mutate()
    tally.check()


def keeps_rows(file, rows):
    """Return whether metrics were only added to, as a killed training leaves them."""
    return file.is_file() and file.read_bytes().startswith(rows)


def evaluations_of(found):
    """Return what the evaluations of a run say, whatever their files are called."""
    return sorted(str(found[one]) for one in found if one.parts[0] == "evaluations")


def contents(run):
    """Return what every file says."""
    return {p.relative_to(run): meaning(p) for p in run.rglob("*") if p.is_file()}


def judge(bench, state, command, changed, absent, ended):
    """Return what came of a mutation: refused, right, named, or a defect.

    A report without an evaluation that is not there says no more than it knows.
    """
    if ended.crashed:
        return TRACEBACK
    if ended.refused:
        return RIGHT
    if ended.code != 0:
        return WRONG
    try:
        found = bench.result(command, ended)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        found = repr(error)  # what is there cannot be read
    bench.remark = f"\n    {found}" if isinstance(found, str) else ""
    if found == bench.intact[state, command][1] or (absent and command in ("report", "archive")):
        return RIGHT
    return RIGHT if bench.told(state, command, changed, ended) else SILENT


def judge_verify(changed, absent, ended):
    """Altered content has to be found and named; what may be absent or is not covered, need not."""
    if ended.crashed:
        return TRACEBACK
    if absent or not any(one.parts[0] in COVERED for one in changed):
        return RIGHT if ended.code in (0, 1, 2) else WRONG
    named = any(one.name in ended.text or one.parent.name in ended.text for one in changed)
    return RIGHT if named and ended.code in (1, 2) else SILENT


def test_a_marker_that_covers_nothing_is_refused(bench):
    bench.prepare("half")
    marker = bench.run / "checkpoints" / "00000002" / "complete.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "files": {}}))
    assert bench.call("eval").refused
    ended = bench.call("resume")
    assert "00000002" in ended.err, ended
    assert bench.result("resume", ended) == bench.intact["half", "resume"][1]
