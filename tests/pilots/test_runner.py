"""Trials: blinded, on disk at once, resumed after anything."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.robots import RobotError
from prism_motor.pilots import PilotError, TrialBook, read_plan, report_pilot, run_pilot
from prism_motor.pilots.records import KILLED
from tests.pilots.conftest import ARM, NAMES, SIM, Script, read, save_policy

ROOT = Path(__file__).parents[2]


def trials_of(folder):
    return TrialBook(folder, read_plan(folder)).trials


def test_a_simulated_pilot_runs_by_itself(plan):
    folder = plan()
    assert run_pilot(folder).done == 8
    for trial in trials_of(folder):
        assert trial.label.by == "robot"
        assert trial.judged["success"] == (trial.label.outcome == "success")
        assert trial.scene["target"]
        course = trial.course
        assert (course.stopped_by == "success") == (trial.label.outcome == "success")
        if trial.label.outcome == "failure":
            assert course.frames == 30  # the limit, in steps
            assert course.success_after is None
        else:
            assert course.success_after == pytest.approx(course.frames / 30, abs=1e-3)
        # States, actions and a video.
        stem = folder / "trials" / f"{trial.number:03d}"
        data = np.load(stem.with_suffix(".npz"))
        assert data["state"].shape == data["action"].shape == (course.frames, 2)
        assert list(data["state_names"]) == ["x.pos", "y.pos"]
        assert Path(f"{stem}-top.mp4").stat().st_size > 500
    # Both arms start from the same pose, and are told apart by what they do.
    by_pose = {}
    for trial in trials_of(folder):
        by_pose.setdefault(trial.pose, []).append(trial)
    assert all(one.scene == two.scene for one, two in by_pose.values())
    assert run_pilot(folder).done == 8  # nothing is left to do


def test_the_same_plan_gives_the_same_trials(plan):
    """Up to the letters, which are drawn."""
    seen = []
    for name in ("one", "two"):
        folder = plan(folder=name, trials=2)
        run_pilot(folder)
        found = {}
        for trial in trials_of(folder):
            data = np.load(folder / "trials" / f"{trial.number:03d}.npz")
            found[trial.pose, trial.label.outcome, len(data["action"])] = data["action"].sum()
        seen.append(found)
    assert seen[0] == seen[1]


def test_nothing_names_an_arm_before_the_report(plan, capfd):
    """No file, no file name and nothing on the screen, except for what planning was told."""
    folder = plan()
    capfd.readouterr()
    run_pilot(folder)
    shown = capfd.readouterr()
    for word in (*NAMES, "policies/"):
        assert word not in shown.out + shown.err
    for name in NAMES:
        for file in folder.rglob("*"):
            assert name not in file.name
            assert file.is_dir() or name.encode() not in file.read_bytes()
    report_pilot(folder)
    assert NAMES[0] in (folder / "report.md").read_text()


def test_after_the_report_no_trial_follows(plan):
    folder = plan()
    with pytest.raises(PilotError, match="no labelled trial"):
        report_pilot(folder, unfinished=True)
    run_pilot(folder)
    report_pilot(folder)
    with pytest.raises(PilotError, match=r"were revealed at .*Start a new pilot folder"):
        run_pilot(folder)


def test_an_unfinished_pilot_is_not_revealed_by_accident(plan):
    folder = plan(*SIM, "--robot.fails_at=40")
    with pytest.raises(RobotError):
        run_pilot(folder)
    with pytest.raises(PilotError, match=r"of 8 planned trials have a label.*--unfinished"):
        report_pilot(folder)
    assert not (folder / "revealed.json").exists()
    made = report_pilot(folder, unfinished=True)
    assert any(subject == "Unfinished" for subject, _ in made.findings)


def test_a_fault_of_the_robot_makes_the_trial_void(plan):
    folder = plan(*SIM, "--robot.fails_at=40", trials=3)
    with pytest.raises(RobotError, match=r"failed in trial \d: There is no status packet!"):
        run_pilot(folder)
    void = trials_of(folder)[-1]
    assert void.label.outcome == "void"
    assert "no status packet" in void.label.reason
    assert void.course.stopped_by == "robot"


def test_the_operator_places_starts_stops_and_labels(plan, capsys):
    folder = plan(*ARM, trials=2, limit=0.3)
    # Start; after the limit a success. Start; a failure of kind 2. Void with a reason, which is
    # asked again; a note, then a success. The void one is repeated.
    answers = ["", "s", "", "f", "2", "", "v", "", "loose cable", "", "n", "slow", "s", "", "s"]
    # The first line of each trial starts it; lines that follow at once would stop it.
    with Script() as keys:
        feed(keys, answers)
        assert run_pilot(folder, by="ada", keys=keys).done == 5
    labels = [trial.label for trial in trials_of(folder)]
    assert [one.outcome for one in labels] == ["success", "failure", "void", "success", "success"]
    assert labels[1].code == 2
    assert labels[2].reason == "loose cable"
    assert labels[3].note == "slow"
    assert {one.by for one in labels} == {"ada"}
    assert trials_of(folder)[4].repeats == 3
    said = capsys.readouterr().out
    assert "Trial 5 of 5, start pose" in said
    assert said.count("A new start pose") == 2
    # The second trial at a pose shows the first one's picture over the camera's.
    assert (folder / "poses" / "001-top.png").is_file()
    assert (folder / "poses" / "overlay-top.png").is_file()
    assert "overlay" in said


def feed(keys, answers):
    """Type each answer only when it is asked for, as an operator would."""
    rest = iter(answers)
    wait, ask = keys.wait, keys.ask

    def typed(allowed, meanwhile=None):
        keys._typed += f"{next(rest)}\n".encode()
        return wait(allowed, meanwhile)

    def answered(question):
        keys._typed += f"{next(rest)}\n".encode()
        return ask(question)

    keys.wait, keys.ask = typed, answered


def test_a_key_ends_a_trial_and_says_when_it_succeeded(plan):
    folder = plan(*ARM, trials=2, limit=20.0)
    with Script(*(["", "s"] * 4)) as keys:
        run_pilot(folder, keys=keys)
    for trial in trials_of(folder):
        assert trial.course.stopped_by == "key"
        assert trial.course.success_after is not None
        assert trial.course.seconds < 5
        assert trial.label.outcome == "success"


def test_the_loop_keeps_its_rate_on_a_robot_in_real_time(plan):
    """It may be slower, if other processes are in the way, but not faster."""
    folder = plan(*ARM, trials=2, limit=1.0, fps=20)
    with Script() as keys:
        feed(keys, ["", "s"] * 4)
        run_pilot(folder, keys=keys)
    for trial in trials_of(folder):
        course = trial.course
        assert course.stopped_by == "limit"
        gaps = np.diff(np.load(folder / "trials" / f"{trial.number:03d}.npz")["time"])
        assert len(gaps) + 1 == course.frames <= 20
        assert course.rate < 20.5
        assert course.rate == pytest.approx(1 / gaps.mean(), abs=0.01)
        assert course.worst == pytest.approx(gaps.max(), abs=1e-3)


def test_a_late_step_does_not_make_the_next_ones_hurry():
    from prism_motor.pilots.loop import Pace

    pace = Pace(20, wait=True)
    time.sleep(0.3)  # six steps late
    began = time.monotonic()
    for _ in range(4):
        pace.keep()
    assert time.monotonic() - began > 3 * 0.05 - 0.001
    began = time.monotonic()
    pace = Pace(20, wait=False)
    for _ in range(100):
        pace.keep()
    assert time.monotonic() - began < 1


def test_every_trial_starts_at_home(plan):
    """Also if the way home takes longer than planned: 0.1 s are three steps of this robot."""
    folder = plan(trials=4, home=(-50.0, 20.0))
    run_pilot(folder)
    for trial in trials_of(folder):
        states = np.load(folder / "trials" / f"{trial.number:03d}.npz")["state"]
        assert states[0] == pytest.approx([-50.0, 20.0], abs=1e-4)


def test_a_keyboard_that_is_gone_makes_the_trial_void(plan):
    folder = plan(*ARM, trials=2, limit=30.0)
    with Script("", ends=True) as keys, pytest.raises(PilotError, match="keyboard is gone"):
        run_pilot(folder, keys=keys)
    (trial,) = trials_of(folder)
    assert trial.label.outcome == "void"
    assert trial.label.reason == "the keyboard was gone"
    assert trial.course.stopped_by == "keyboard"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--robot.port=/dev/nowhere",), r"Could not connect on port '/dev/nowhere'\. Is it there"),
        (("--robot.calibrated=false",), "is not calibrated.*lerobot-calibrate"),
    ],
)
def test_a_robot_that_is_not_there_is_one_message_and_no_trial(plan, flags, message):
    folder = plan(*SIM, *flags)
    with pytest.raises(RobotError, match=message):
        run_pilot(folder)
    assert not trials_of(folder)


def test_a_robot_far_from_the_demonstrations_does_not_move(plan, tmp_path):
    arms = [
        f"{name}={save_policy(tmp_path / name, low=60.0, high=70.0)}" for name in ("one", "two")
    ]
    folder = plan(arms=arms)
    with pytest.raises(InputError, match=r"x.pos is at 0.0, but .* arm A it was from 60.0 to 70.0"):
        run_pilot(folder)
    assert not trials_of(folder)


def test_what_changed_since_the_plan_is_refused(plan, tmp_path, monkeypatch):
    folder = plan()
    # A policy; the message does not say whose.
    weights = tmp_path / "policies" / NAMES[0] / "config.json"
    before = weights.read_text()
    weights.write_text(before + " ")
    with pytest.raises(PilotError, match=r"A policy of arm [AB] is gone or has changed") as raised:
        run_pilot(folder)
    assert NAMES[0] not in str(raised.value)
    weights.write_text(before)
    # LeRobot.
    from prism_motor.pilots import runner

    there = runner.find_provenance()
    changed = {**there, "packages": {**there["packages"], "lerobot": "0.0.1"}}
    with monkeypatch.context() as patch:
        patch.setattr(runner, "find_provenance", lambda: changed)
        with pytest.raises(PilotError, match=r"LeRobot's version changed: .*, now 0.0.1"):
            run_pilot(folder)
    # The calibration file, which the plan had none of.
    from prism_motor.integrations.lerobot.robots import make_robot, parse_robot

    file = make_robot(parse_robot(SIM)).calibration_fpath
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    try:
        with pytest.raises(PilotError, match="calibration file changed"):
            run_pilot(folder)
    finally:
        file.unlink()


def test_two_cannot_run_one_pilot(plan):
    from prism_motor.runs.layout import LOCK
    from prism_motor.runs.locks import Lock, LockedError

    folder = plan()
    with Lock(folder / LOCK, ""), pytest.raises(LockedError, match="already being run"):
        run_pilot(folder)


def test_several_arms_and_training_seeds(plan, tmp_path):
    arms = [
        f"{name}={save_policy(tmp_path / f'{name}{seed}', reach + 0.1 * seed)}"
        for name, reach in (("near", -0.5), ("middle", 0.0), ("far", 0.8))
        for seed in range(2)
    ]
    folder = plan(arms=arms, trials=4, reference="middle")
    run_pilot(folder)
    made = report_pilot(folder)
    assert [arm.name for arm in made.results.arms] == ["middle", "far", "near"]
    assert len(made.results.comparisons) == 2
    assert all(tally.trials == 2 for arm in made.results.arms for tally in arm.policies)
    assert any("2 training runs" in sentence for _, sentence in made.findings)


def test_a_run_folder_of_manipulation_is_a_policy(plan, policies, tmp_path, monkeypatch):
    from dataclasses import replace

    from prism_motor.manipulation.config import HandlingTask
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.train import session
    from tests.manipulation.diffusion.conftest import make_config

    draw = np.random.default_rng(0)

    def made_up(config):
        import torch

        vectors = torch.tensor(draw.uniform(-90, 90, (40, 2)), dtype=torch.float32)
        images = torch.tensor(draw.integers(0, 255, (40, 3, 16, 16)), dtype=torch.uint8)
        return Demonstrations(
            {"observation.state": vectors, "action": vectors},
            {"observation.images.top": images},
            torch.tensor([20, 40]),
        )

    monkeypatch.setattr("prism_motor.manipulation.data.load_for", made_up)
    config = make_config(images=True, updates=2, checkpoint_every=2)
    config = replace(config, task=HandlingTask("metaworld", "reach-v3", 2, 0, 2, ("top",)))
    session.start(config, tmp_path / "run")
    folder = plan(arms=[policies[0], f"ours={tmp_path / 'run'}"], trials=2, limit=0.2)
    assert run_pilot(folder).done == 4


PROGRAM = [sys.executable, "-m", "prism_motor.cli", "pilot", "run"]


def start(folder):
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src"), str(ROOT)]
    return subprocess.Popen(
        [*PROGRAM, str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.mark.slow
def test_kill_in_trial_3_then_resume(plan):
    """The killed trial is void with that reason, and repeated at the end."""
    folder = plan(*SIM, "--robot.pause=0.2", limit=0.5, trials=2)
    running = start(folder)
    try:
        wait_for((folder / "trials" / "003.json").exists)
        running.kill()
        running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == -signal.SIGKILL
    before = [file.read_bytes() for file in sorted((folder / "trials").glob("00[12].*"))]
    assert read(folder / "trials" / "003.json")["label"] is None
    # The second process settles the third trial, does the fourth, and repeats the third.
    again = start(folder)
    try:
        said, _ = again.communicate(timeout=240)
    finally:
        again.kill()
    assert again.returncode == 0, said
    assert "Trial 3 was killed before it ended. It is void" in said
    assert "Trial 4 of 5" in said
    trials = trials_of(folder)
    assert [trial.label.outcome == "void" for trial in trials] == [False, False, True, False, False]
    assert trials[2].label.reason == KILLED
    assert (trials[4].repeats, trials[4].slot) == (3, 3)
    after = [file.read_bytes() for file in sorted((folder / "trials").glob("00[12].*"))]
    assert before == after
    assert not list((folder / "trials").glob(".*"))  # no half of a video
    made = report_pilot(folder)
    assert [arm.tally.trials for arm in made.results.arms] == [2, 2]
    assert sum(arm.void for arm in made.results.arms) == 1


@pytest.mark.slow
def test_ctrl_c_in_a_trial_makes_it_void_and_saves(plan):
    folder = plan(*ARM, limit=600.0, trials=2, fps=10)
    running = start(folder)
    try:
        running.stdin.write("\n")
        running.stdin.flush()
        first = folder / "trials" / "001.json"
        wait_for(first.exists)
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        running.wait(60)  # its input stays open
        said, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert f"Continue with: prism pilot run {folder}" in said
    (trial,) = trials_of(folder)
    assert trial.label.outcome == "void"
    assert "stopped the program" in trial.label.reason
    assert trial.course.frames > 2
    assert read(first)["course"]["stopped_by"] == "signal"
    assert trial.label.reason != KILLED
