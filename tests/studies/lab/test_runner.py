"""Running, resuming and confirming a laboratory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from prism_motor._checks import PrismError
from prism_motor.studies.lab import runner
from prism_motor.studies.lab.cells import CellJob, CellKey, CellResult, CellRunner, LabFit
from prism_motor.studies.lab.records import LabRecords, own_folder
from prism_motor.studies.lab.report import report_lab
from prism_motor.studies.lab.runner import confirm_lab, plan_cells, run_lab

from .conftest import TINY


def fits(folder):
    """Everything that was trained, without the time it took."""
    cells = LabRecords(folder).cells
    return {
        str(key): (sorted(map(str, cell.tuning)), sorted(map(str, cell.seeds)), cell.parameters)
        for key, cell in cells.items()
    }


@pytest.fixture
def copy(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "lab")
    return tmp_path / "lab"


@pytest.fixture
def idle(monkeypatch):
    """Make training impossible."""

    def refuse(*_, **__):
        raise AssertionError("a finished cell was trained again")

    monkeypatch.setattr(runner, "WorkerPool", refuse)


def test_arms_that_read_a_history_have_no_cells_without_one():
    config = replace(TINY, problems=("linear", "adaptive-payload"), arms=("prism-temporal",))
    assert [(key.problem, key.arm) for key in plan_cells(config)] == [
        ("adaptive-payload", "mlp-matched"),
        ("adaptive-payload", "prism-temporal"),
        ("linear", "mlp-matched"),
    ]


def test_all_problems_of_a_folder_are_those_of_its_time(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "lab")
    about = json.loads((folder / "lab.json").read_text())
    about["config"]["problems"] = []
    (folder / "lab.json").write_text(json.dumps(about))
    assert sorted(LabRecords(folder).config().problems) == sorted(TINY.problems)


def test_all_cells_are_tuned_on_seeds_that_are_not_reported(finished):
    records = LabRecords(finished)
    assert set(records.cells) == set(plan_cells(TINY))
    assert len(records.cells) == 4  # two problems, the reference and one arm
    for cell in records.cells.values():
        assert {fit.seed for fit in cell.tuning} == {901}
        assert {fit.learning_rate for fit in cell.tuning} == {5e-3, 2e-2}
        assert [fit.seed for fit in cell.seeds] == [1, 2]
        assert {fit.learning_rate for fit in cell.seeds} == {cell.rate(TINY)}
        assert abs(cell.parameters - 600) <= 6
    assert set(records.structures) == set(TINY.problems)


def test_the_same_seed_gives_the_same_numbers(finished):
    key = CellKey("gain-schedule", "prism-gate1", 600, 200)
    again = CellRunner(TINY)(CellJob(key, CellResult(), (1, 2)))
    stored = LabRecords(finished).cells[key]
    assert (again.tuning, again.seeds) == (stored.tuning, stored.seeds)
    assert again.seeds[0].test != again.seeds[1].test


def test_the_rate_is_chosen_by_validation_on_tuning_seeds_alone():
    config = replace(TINY, tuning_seeds=2)
    tuning = [
        LabFit(901, 5e-3, 0.1, 9.0, 9.0),
        LabFit(902, 5e-3, 0.1, 9.0, 9.0),
        LabFit(901, 2e-2, 0.04, 9.0, 9.0),
        LabFit(902, 2e-2, 0.3, 9.0, 9.0),
    ]
    assert CellResult(0, tuning).rate(config) == 5e-3  # 0.1 < sqrt(0.04 * 0.3)
    assert CellResult(0, tuning).rate(TINY) == 2e-2  # seed 901 alone
    diverged = [replace(tuning[0], validation=None), *tuning[1:]]
    assert CellResult(0, diverged).rate(config) == 2e-2


def test_a_finished_laboratory_is_not_run_again(copy, monkeypatch):
    before = (copy / "cells.jsonl").read_bytes()
    monkeypatch.setattr(
        runner, "_do", lambda pool, title, jobs, *_: pytest.fail("work") if jobs else 0
    )
    run_lab(copy, TINY)
    assert (copy / "cells.jsonl").read_bytes() == before


def test_a_cut_line_costs_one_cell_and_the_end_is_the_same(copy, finished):
    file = copy / "cells.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2]) + lines[-2][: len(lines[-2]) // 2])
    run_lab(copy, TINY)
    assert fits(copy) == fits(finished)
    assert len(file.read_bytes().splitlines()) == len(lines)


def test_more_seeds_and_arms_add_to_what_is_there(copy, finished):
    run_lab(copy, replace(TINY, seeds=3, problems=("linear",), arms=("prism", "prism-gate1")))
    records = LabRecords(copy)
    grown = records.cells[CellKey("linear", "prism-gate1", 600, 200)]
    assert [fit.seed for fit in grown.seeds] == [1, 2, 3]
    assert len(grown.tuning) == 2
    old = LabRecords(finished).cells[CellKey("linear", "prism-gate1", 600, 200)]
    assert grown.seeds[:2] == old.seeds
    assert len(records.cells[CellKey("linear", "prism", 600, 200)].seeds) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"updates": 7}, r"cells with updates = 6, not 7.*new folder"),
        ({"batch": 32}, r"cells with batch = 64"),
        ({"problems": ("lineer",)}, r"Unknown problem 'lineer'.*Did you mean 'linear'"),
        ({"arms": ("prism-gate2",)}, r"Unknown arm 'prism-gate2'"),
        ({"sizes": (500,), "problems": ("g1-inverse",)}, "no width comes within 1 %"),
    ],
)
def test_what_cannot_be_is_refused_before_work(copy, idle, change, message):
    before = sorted((f.name, f.read_bytes()) for f in copy.iterdir())
    with pytest.raises(PrismError, match=message):
        run_lab(copy, replace(TINY, **change))
    assert sorted((f.name, f.read_bytes()) for f in copy.iterdir()) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [("seeds", 1), ("sizes", (10,)), ("samples", ()), ("learning_rates", (0.0,)), ("reach", 0)],
)
def test_values_out_of_range_are_refused(field, value):
    with pytest.raises(ValueError, match=f"lab.{field}"):
        replace(TINY, **{field: value})


def test_other_versions_damage_and_foreign_folders_are_refused(copy, tmp_path):
    about = json.loads((copy / "lab.json").read_text())
    about["provenance"]["packages"]["torch"] = "1.0"
    (copy / "lab.json").write_text(json.dumps(about))
    with pytest.raises(PrismError, match=r"made with torch 1\.0"):
        run_lab(copy, TINY)
    (copy / "cells.jsonl").write_text('{"problem": 1}\n' + (copy / "cells.jsonl").read_text())
    with pytest.raises(PrismError, match=r"line 1 is damaged.*Delete the line"):
        LabRecords(copy)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(PrismError, match="holds something else"):
        run_lab(tmp_path / "other", TINY)
    with pytest.raises(PrismError, match="holds no laboratory"):
        LabRecords(tmp_path / "nothing")


def test_one_owner_at_a_time(copy):
    with own_folder(copy), pytest.raises(PrismError, match="in use by process"):
        run_lab(copy, TINY)


def test_confirmation_has_fresh_seeds_and_happens_once(copy):
    confirm_lab(copy)
    records = LabRecords(copy)
    found = records.confirmation()
    assert found["finished"]
    assert found["seeds"] == [101, 102]
    for cell in records.cells.values():
        confirming = [fit for fit in cell.seeds if fit.seed > 100]
        assert [fit.seed for fit in confirming] == [101, 102]
        assert {fit.learning_rate for fit in confirming} == {cell.rate(TINY)}
    with pytest.raises(PrismError, match=r"was confirmed on .* confirms nothing"):
        confirm_lab(copy)
    with pytest.raises(PrismError, match="its settings are final"):
        run_lab(copy, replace(TINY, tuning_seeds=2))
    assert "done once, finished on" in report_lab(copy).page.read_text()
    assert "**Confirmation: Held-out test data**" in (copy / "report.md").read_text()


def test_only_a_finished_laboratory_is_confirmed_and_only_the_begun_confirmation_goes_on(copy):
    file = copy / "cells.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    with pytest.raises(PrismError, match=r"Not finished in .*: 1 cell, the first"):
        confirm_lab(copy)
    assert LabRecords(copy).confirmation() is None
    file.write_text("".join(lines))
    LabRecords(copy).begin_confirmation({"cells": [], "seeds": [101]})
    with pytest.raises(PrismError, match="unfinished confirmation of other cells"):
        confirm_lab(copy)


@pytest.mark.slow
def test_kill_9_costs_one_cell(tmp_path, finished):
    folder = tmp_path / "killed"
    code = (
        "from pathlib import Path; from tests.studies.lab.conftest import TINY; "
        "from prism_motor.studies.lab.runner import run_lab; "
        f"run_lab(Path({str(folder)!r}), TINY)"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    process = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.DEVNULL)
    cells = folder / "cells.jsonl"
    while not (cells.exists() and '"arm"' in cells.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = fits(folder)
    assert done
    run_lab(folder, TINY)
    assert fits(folder) == fits(finished)
    rows = [json.loads(line) for line in cells.read_text().splitlines()]
    names = [(row["problem"], row["arm"]) for row in rows if "arm" in row]
    assert len(names) == len(set(names)) == 4
