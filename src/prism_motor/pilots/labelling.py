"""The operator's questions: what a trial was, and a second, blinded look at the videos."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prism_motor._checks import InputError, check_name
from prism_motor._console import count
from prism_motor.pilots.keys import Keys
from prism_motor.pilots.layout import LABELS, REVEALED, TRIALS, PilotError
from prism_motor.pilots.plan import read_plan
from prism_motor.pilots.records import FAILURES, Label, Trial, TrialBook, now
from prism_motor.runs.atomic import write_json
from prism_motor.runs.configs import ConfigError, from_dict, to_dict

_CODES = ", ".join(f"{code} {name}" for code, name in FAILURES.items())


def ask_label(keys: Keys, by: str, key: str | None = None) -> Label:
    """Ask what a trial was.

    Args:
        keys: The keyboard.
        by: Who answers.
        key: ``s``, ``f`` or ``v`` if that is known already.
    """
    note, code = "", None
    if key not in ("s", "f", "v"):
        print("Was it s success, f failure, v void (the hardware's fault), or n to add a note?")
    while key not in ("s", "f", "v"):
        key = keys.wait("sfvn")
        if key == "n":
            note = keys.ask("Note:")
            print("And now s, f or v?")
    if key == "f":
        print(f"Which failure? {_CODES}")
        code = int(keys.wait("".join(map(str, FAILURES))))
    reason = ""
    while key == "v" and not reason:
        reason = keys.ask("Void, because (a reason is needed):")
    outcomes: dict[str, Literal["success", "failure", "void"]] = {
        "s": "success",
        "f": "failure",
        "v": "void",
    }
    return Label(outcomes[key], by, code, reason, note)


def judge_label(judged: dict[str, Any]) -> Label:
    """Return the label that a robot's own judgement gives."""
    if judged["success"]:
        return Label("success", by="robot")
    codes = {name: code for code, name in FAILURES.items()}
    return Label("failure", by="robot", code=codes.get(judged.get("failure", "")))


@dataclass(frozen=True)
class SecondLabel:
    """What somebody saw in the videos of a trial."""

    trial: int
    """Number of the trial."""
    success: bool | None
    """Whether it was a success; ``None`` if the videos do not show it."""
    revealed: bool
    """Whether the arms were known by then."""
    time: str
    """When, in UTC."""


def label_file(folder: Path, by: str) -> Path:
    """Return the file of somebody's second look."""
    return folder / LABELS / f"{check_name('labeller', by)}.json"


def read_second(file: Path) -> list[SecondLabel]:
    """Return the labels of a second look."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["labels"]
        return [from_dict(SecondLabel, row, file.name) for row in rows]
    except (ValueError, KeyError, TypeError, ConfigError) as error:
        raise PilotError(f"{file} is damaged: {error}") from error


def look_again(folder: Path, by: str, keys: Keys) -> int:
    """Label the videos of all trials that count, in an order of one's own, and return how many.

    The first label is not shown. Every label is saved at once, and a later call goes on.

    Args:
        folder: The pilot's folder.
        by: Who looks.
        keys: The keyboard.
    """
    plan = read_plan(folder)
    if by in {trial.label.by for trial in TrialBook(folder, plan) if trial.label is not None}:
        raise InputError(f"{by} labelled these trials first. A second look needs somebody else.")
    shown = [trial for trial in TrialBook(folder, plan) if _has_videos(folder, trial)]
    if not shown:
        raise PilotError(f"{folder} has no videos of labelled trials yet.")
    random.Random(f"look {plan.config.seed} {by}").shuffle(shown)
    file = label_file(folder, by)
    done = read_second(file) if file.is_file() else []
    known = {label.trial for label in done}
    print(f"A success is: {plan.config.criterion}")
    for place, trial in enumerate(shown, start=1):
        if trial.number in known:
            continue
        print(f"Video {place} of {len(shown)}: {', '.join(map(str, _videos(folder, trial)))}")
        print("Was it s success, f failure, or u (the video does not show it)?")
        key = keys.wait("sfu")
        success = None if key == "u" else key == "s"
        done.append(SecondLabel(trial.number, success, (folder / REVEALED).exists(), now()))
        write_json(file, {"by": by, "labels": [to_dict(label) for label in done]})
    print(f"{count(len(done), 'trial')} labelled by {by}, in {file}.")
    return len(done)


def _videos(folder: Path, trial: Trial) -> list[Path]:
    return sorted((folder / TRIALS).glob(f"{trial.number:03d}-*.mp4"))


def _has_videos(folder: Path, trial: Trial) -> bool:
    counts = trial.label is not None and trial.label.outcome != "void"
    return counts and bool(_videos(folder, trial))
