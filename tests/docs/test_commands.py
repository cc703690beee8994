"""Commands of the pages: the command line understands all of them, and cheap ones are run."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import BLOCKS, DOCS, MARK, PAGES, ROOT, inline_commands

BASH = [one for one in BLOCKS if one.language == "bash"]
ELSEWHERE = re.compile(
    r"cuda|--engine gpu|--on (?:ray|slurm)|ray://|=so101_follower|/dev/|torchrun|^ray ", re.M
)
"""What no machine of ours has."""
PROGRAMS = {"prism", "pip", "make", "python", "torchrun", "ray"}


def prism_words(words):
    """Return the arguments of prism in a command, or None; dots stand for what is left out."""
    if words[0] == "prism":
        return [word for word in words[1:] if word != "..."]
    if words[0] == "torchrun":
        return words[words.index("prism_motor.cli") + 1 :]
    return None


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What the command line says against each command of the pages, by its words."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("mujoco is not installed (extra 'locomotion')")
    folder = tmp_path_factory.mktemp("pages") / "work"
    shutil.copytree(ROOT / "examples" / "extend", folder)
    for block in BLOCKS:
        if block.language == "toml" and block.page.name == "compare.md":
            (folder / "mine.toml").write_text(block.text)
    found = [prism_words(words) for block in BASH for words in block.commands]
    found += [prism_words(words) for page in PAGES for words in inline_commands(page)]
    calls = [list(words) for words in dict.fromkeys(tuple(one) for one in found if one)]
    result = subprocess.run(
        [sys.executable, "-m", "tests.docs.understand"],
        input=json.dumps(calls), cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
             "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return {tuple(call): said for call, said in zip(calls, json.loads(result.stdout), strict=True)}


def test_the_command_line_understands_every_command(complaints):
    lerobot = importlib.util.find_spec("lerobot") is not None
    wrong = []
    for block in BASH:
        for shown in block.commands:
            words = prism_words(shown)
            said = complaints[tuple(words)] if words else ""
            if "..." in shown and re.search(r"Missing from|required", said):
                continue
            if said and (lerobot or "not installed" not in said):
                wrong.append(f"{block.name}: prism {' '.join(words)}\n{said}")
    assert not wrong, "\n".join(wrong)


def test_commands_in_sentences_have_no_unknown_flags(complaints):
    wrong = []
    for page in PAGES:
        for words in inline_commands(page):
            said = complaints.get(tuple(prism_words(words)), "")
            said = re.sub(r"Unknown (?:domain|campaign) '(?:DOMAIN|-.*)'", "", said)
            if re.search(r"Unrecognized|Unknown", said):
                wrong.append(f"{page.relative_to(ROOT)}: {' '.join(words)}\n{said}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("block", BASH, ids=lambda block: block.name)
def test_other_programs_exist(block):
    project = (ROOT / "pyproject.toml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for words in block.commands:
        program = words[0]
        assert program in PROGRAMS or program.startswith("lerobot-"), program
        if program == "make":
            targets = [word for word in words[1:] if "=" not in word]
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
        if program == "pip":
            for extras in re.findall(r"(?:prism-motor|\.)\[([\w,]+)\]", " ".join(words)):
                for extra in extras.split(","):
                    assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
        if program == "python" and words[1] == "-m":
            assert importlib.util.find_spec(words[2]) is not None
        elif program == "python" and words[1] != "-c":
            assert words[1].endswith("runner.py") or (ROOT / words[1]).is_file()
        if program.startswith("lerobot-") and importlib.util.find_spec("lerobot") is not None:
            scripts = importlib.metadata.distribution("lerobot").entry_points
            newer = {"lerobot-rollout"}  # of LeRobot 0.6
            assert program in newer | {script.name for script in scripts}


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if DOCS in one.page.parents], ids=lambda block: block.name
)
def test_what_cannot_run_here_says_so(block):
    typed = "\n".join(line.partition("  #")[0] for line in block.text.splitlines())
    if block.language == "bash" and ELSEWHERE.search(typed):
        assert block.reason, "say above it: *Not run by our tests: needs ... .*"
    if block.reason:
        assert re.search(r"needs|takes|trains on", block.reason), "why not?"


def test_marks_stand_above_blocks():
    for page in PAGES:
        marks = [line for line in page.read_text().splitlines() if MARK.match(line)]
        assert len(marks) == sum(one.reason is not None for one in BLOCKS if one.page == page)


# Commands that are run, in this order, with what makes them small; the last of two options counts.
WALK = "--updates 2 --envs 8 --threads 1 --processes 1 --task.terminations.duration 2"
SMALL = {
    "info": "",
    "motions list": "",
    "motions show kick": "--width 64 --height 64 --moments 2",
    "lab list": "",
    "train locomotion --preset laptop --arm prism --seed 1 --processes 2": WALK,
    "train --resume runs/laptop-prism-1 --processes 2": "--processes 1 --updates 3",
    "train --config runs/laptop-prism-1/config.json": "",
    "eval runs/laptop-prism-1": "--seeds 101 --envs 2 --episodes 1",
    "eval g1-prism": "--conditions payload --seeds 101 --envs 2 --episodes 1",
    "video runs/laptop-prism-1 --command": "--seconds 0.1 --width 64 --height 64",
    "explain g1-prism": "--envs 4 --seconds 1 --states 20 --draws 2 --no-closed-loop",
    "traces g1-mlp-matched g1-prism": "--seconds 1 --envs 2 --detail 0.2 0.6",
    "export g1-prism": "",
    "sim2sim outputs/g1-prism/export": "--seconds 0.4",
    "verify RUN": "",
    "report runs": "",
    "campaign status table1": "",
    "campaign status mine.toml": "",
}


@pytest.mark.slow
def test_cheap_commands_run(tmp_path):
    for package in ("mujoco", "rsl_rl", "matplotlib", "onnxruntime", "imageio"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra 'test')")
    typed = [words[1:] for block in BASH for words in block.commands if words[0] == "prism"]
    calls = []
    for start, more in SMALL.items():
        found = next((one for one in typed if " ".join(one).startswith(start)), None)
        assert found, f"no page has: prism {start}"
        run = [("runs/laptop-prism-1" if word == "RUN" else word) for word in found]
        if "eval" in run and "--conditions" in more and "--conditions" in run:
            run = run[: run.index("--conditions")]
        calls.append(run + more.split())
    (tmp_path / "mine.toml").write_text(
        next(one.text for one in BLOCKS if one.language == "toml" and one.page.name == "compare.md")
    )
    code = (
        "import json, sys\nfrom prism_motor.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    print('$ prism', *words, flush=True)\n"
        "    try: main(words)\n"
        "    except SystemExit as stop:\n"
        "        if stop.code: sys.exit(f'{words}: exit code {stop.code}')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, json.dumps(calls)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    exported = tmp_path / "outputs" / "g1-prism" / "export"
    result = subprocess.run(
        [sys.executable, str(exported / "runner.py"), str(exported), "--seconds", "0.4"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
