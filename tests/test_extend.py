"""Bring your own: programs of the pages are the files of examples/extend; commands run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "extend"
PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("howto/robot.md", "howto/task.md", "extend.md")
)
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^##? |\Z)", PAGE, re.DOTALL | re.MULTILINE))
PROGRAMS = {
    "A robot from an MJCF file": "my_robot.py",
    "A velocity task on that robot": "my_velocity_task.py",
    "A task with its own observations and rewards": "my_task.py",
    "A reward term, with parameters and memory": "my_reward.py",
    "An actor": "my_actor.py",
    "A manipulation suite": "my_suite.py",
    "A study": "my_study.py",
    "A domain": "my_domain.py",
}

# Options that make the page's commands take seconds; of an option given twice, the last counts.
SMALL = {
    "record": "--episodes 3",
    "train locomotion": "--updates 2 --envs 8 --threads 1 --task.terminations.duration 2",
    "train manipulation": "--updates 2 --threads 1 --network.widths 16 32",
    "train power": "--updates 20",
    "eval runs/my_suite": "--episodes 1",
    "eval runs/small": "--episodes 3",
    "eval": "--seeds 101 --envs 2 --episodes 1",
    "sim2sim": "--seconds 1",
    "torque-limits g1-prism": "--seconds 0.4",
}


def commands(section):
    """Return the commands of a section as lists of words, without ``prism``."""
    blocks = re.findall(r"```bash\n(.*?)```", SECTIONS[section], re.DOTALL)
    lines = [line for line in "".join(blocks).splitlines() if line.startswith("prism ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def shrink(words):
    line = " ".join(words)
    return words + next((SMALL[key].split() for key in SMALL if line.startswith(key)), [])


def run_together(calls, folder):
    """Run commands of prism in one new process, which knows nothing of plugins before."""
    code = "import json, sys; from prism_motor.cli import main\n"
    code += "for words in json.loads(sys.argv[1]):\n"
    code += "    try: main(words)\n"
    code += "    except SystemExit as stop:\n"
    code += "        if stop.code: sys.exit(f'{words}: exit code {stop.code}')\n"
    result = subprocess.run(
        [sys.executable, "-c", code, json.dumps(calls)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def run_section(section, tmp_path):
    """Run the commands of a section: those that name the plugin, then the others without it."""
    folder = tmp_path / "work"
    shutil.copytree(EXAMPLES, folder)
    calls = [shrink(words) for words in commands(section)]
    named = [words for words in calls if "--plugin" in words]
    assert named
    output = run_together(named, folder)
    others = [words for words in calls if "--plugin" not in words]
    return folder, output + run_together(others, folder)


def episodes(run):
    files = sorted((run / "evaluations").glob("*.json"))
    assert files, f"no evaluation in {run}"
    return [episode for file in files for episode in json.loads(file.read_text())["episodes"]]


def test_every_example_has_a_section():
    assert set(PROGRAMS) == set(SECTIONS)
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROGRAMS.values())


@pytest.mark.parametrize("section", PROGRAMS)
def test_program_on_the_page_is_the_file(section):
    program = (EXAMPLES / PROGRAMS[section]).read_text(encoding="utf-8")
    assert f"`{PROGRAMS[section]}`:\n\n```python\n{program}```" in SECTIONS[section]


def test_model_on_the_page_is_the_file():
    model = (EXAMPLES / "hopper.xml").read_text(encoding="utf-8")
    assert f"`hopper.xml`:\n\n```xml\n{model}```" in PAGE


@pytest.mark.parametrize("name", PROGRAMS.values())
def test_programs_are_short(name):
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 40


@pytest.mark.parametrize("section", [s for s in PROGRAMS if s != "A robot from an MJCF file"])
def test_sections_show_a_whole_round(section):
    shown = [words[0] for words in commands(section)]
    if section == "A study":
        assert shown == ["torque-limits", "torque-limits", "report"]
    else:
        assert [word for word in shown if word in ("train", "eval", "report", "export")] == sorted(
            (word for word in shown if word in ("train", "eval", "report", "export")),
            key=["train", "eval", "report", "export"].index,
        )
        assert {"train", "eval", "report", "export"} <= set(shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("A velocity task on that robot", ["hopper-walk-prism-1"]),
        ("A task with its own observations and rewards", ["hopper-hop-prism-1"]),
        ("A reward term, with parameters and memory", ["laptop-calm-prism-1"]),
        ("An actor", ["laptop-squares-1", "laptop-mlp-matched-squares-1"]),
    ],
)
def test_walking(section, names, tmp_path):
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed (extra 'locomotion')")
    pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    folder, _ = run_section(section, tmp_path)
    plugin = PROGRAMS[section].removesuffix(".py")
    for name in names:
        run = folder / "runs" / name
        assert json.loads((run / "config.json").read_text())["plugins"] == [plugin]
        assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
        assert all(episode["steps"] > 0 for episode in episodes(run))
    exported = {file.name for file in (folder / "runs" / names[0] / "export").iterdir()}
    assert exported == {"contract.json", "policy.onnx", "robot.xml", "runner.py", "runner_parts"}
    report = (folder / "runs" / "report.md").read_text()
    assert all(name.rpartition("-")[0].split("-")[-1] in report for name in names)


@pytest.mark.slow
def test_suite(tmp_path):
    pytest.importorskip("lerobot", reason="lerobot is not installed (extra 'manipulation')")
    folder, output = run_section("A manipulation suite", tmp_path)
    run = folder / "runs" / "my_suite-reach-state-prism-1"
    assert "3 demonstrations from 3 attempts" in output
    assert len(episodes(run)) == 2  # one under each condition
    assert (run / "pretrained" / "model.safetensors").is_file()
    assert "reach" in (folder / "runs" / "report.md").read_text()


@pytest.mark.slow
def test_study(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed (extra 'locomotion')")
    folder, output = run_section("A study", tmp_path)
    assert "usage: prism torque-limits" in output
    finding = json.loads(
        (folder / "outputs/g1-prism/analysis/torque-limits/torque-limits.json").read_text()
    )
    assert len(finding["table"]["rows"]) == 12
    assert "Joints at their torque limit" in (folder / "outputs" / "report.html").read_text()


@pytest.mark.slow
def test_domain(tmp_path):
    pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    folder, _ = run_section("A domain", tmp_path)
    for arm in ("prism", "mlp"):
        assert len(episodes(folder / "runs" / f"small-{arm}-1")) == 3
    assert (folder / "runs" / "small-prism-1" / "export" / "policy.onnx").is_file()
    report = (folder / "runs" / "report.md").read_text()
    assert "prism" in report
    assert "mlp" in report


@pytest.mark.slow
def test_robot_and_python_of_the_page(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed (extra 'locomotion')")
    folder = tmp_path / "work"
    shutil.copytree(EXAMPLES, folder)
    (line,) = re.findall(r"```bash\npython -c (.*?)```", PAGE, re.DOTALL)
    snippet = next(
        code
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        if "choose_study" in code
    )
    code = shlex.split(line, comments=True)[0] + "\n" + snippet.replace("2.0", "0.4")
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "name='hip_roll'" in result.stdout
    assert "left_ankle_pitch" in result.stdout
