"""Reports of tracking: motions, what needs no policy, means of conditions, upright by EMD."""

import json

import pytest
import torch

from prism_motor.report import write_report
from prism_motor.report.arms import make_sections
from prism_motor.report.collect import collect
from prism_motor.report.results import Key, compute
from prism_motor.reporting import MEAN
from prism_motor.runs import Run, to_dict
from prism_motor.tracking.presets import make_config

CONDITIONS = ("nominal", "low-friction", "payload")
OPEN, POSE = "open loop (no policy)", "mean pose (no policy)"


def row(clip, piece, **changes):
    """Return an episode of chosen numbers."""
    names = [f"{name}_{field}" for name in ("open_loop", "default_pose", "mean_pose")
             for field in ("upright", "emd")]  # fmt: skip
    return {
        "clip": clip, "piece": piece, "seconds": 10.0, "stood": True, "upright": 1.0,
        "time_to_fall": 10.0, "emd": 0.5, "joint_distance": 60.0, "velocity_distance": 1.0,
        "proximity": 1.0, "root_drift": 0.1, "foot_slip": 0.01,
        **dict.fromkeys(names, 0.25), **changes,
    }  # fmt: skip


def write(path, arm, seed, rows, clips=()):
    """Write a run with its evaluations, by condition."""
    config = make_config("tiny", arm, seed=seed)
    run = Run.create(path, to_dict(config))
    for update in range(1, 7):
        run.log({"update": update, "samples": 64 * update, "seconds": update, "upright": 0.5})
    run.close()
    run.save(6, {"policy.weight": torch.full((2,), float(seed))}, {"update": 6})
    for condition, episodes in rows.items():
        data = {
            "schema": 1, "condition": {"name": condition}, "evaluation_seed": 101,
            "protocol": {"piece": 10.0, "window": 1, "clips": list(clips), "clips_sha256": "0"},
            "checkpoint": 6, "policy_sha256": f"{seed:064x}", "provenance": {},
            "episodes": [{"arm": arm, "training_seed": seed, "condition": condition,
                          "evaluation_seed": 101, **one} for one in episodes],
        }  # fmt: skip
        run.write_evaluation(f"{condition}-101", data)


@pytest.fixture
def folder(tmp_path):
    """Two arms; prism has a smaller EMD everywhere. Of wave there are two pieces, of stand one."""
    for arm, better in (("mlp-matched", 0.0), ("prism", 0.2)):
        for seed in (1, 2, 3):
            rows = {}
            for number, condition in enumerate(CONDITIONS):
                emd = 0.5 + 0.3 * number + 0.01 * seed - better - 0.002 * seed * bool(better)
                rows[condition] = [
                    row("stand", 0, emd=emd, open_loop_emd=0.2, open_loop_upright=0.5),
                    row("wave", 0, emd=emd + 1, open_loop_emd=0.4, upright=0.5, stood=False),
                    row("wave", 1, emd=emd + 2, open_loop_emd=0.6, upright=0.0, stood=False),
                ]
            write(tmp_path / f"{arm}-{seed}", arm, seed, rows)
    return tmp_path


def results_of(folder):
    (section,) = make_sections(collect(folder))
    return compute(section)


def test_every_motion_weighs_the_same(folder):
    found = results_of(folder)
    assert [part.place.task for part in found.parts] == ["stand", "wave"]
    emd = found.means[Key("mlp-matched", "nominal", "emd")]
    assert emd[1] == pytest.approx((0.51 + (1.51 + 2.51) / 2) / 2)
    upright = found.means[Key("mlp-matched", "nominal", "upright")]
    assert upright[1] == pytest.approx((100 + 25) / 2)
    assert found.over_tasks == {}


def test_what_needs_no_policy_is_not_compared_and_does_not_depend_on_seeds(folder):
    found = results_of(folder)
    assert found.fixed[Key(OPEN, "nominal", "emd")] == pytest.approx((0.2 + 0.5) / 2)
    assert found.fixed[Key(OPEN, "nominal", "upright")] == pytest.approx((50 + 25) / 2)
    assert found.fixed[Key(POSE, MEAN, "emd")] == pytest.approx(0.25)
    assert {claim.arm for claim in (*found.claims, *found.other_claims)} == {"prism"}
    assert all("no policy" not in key.label for key in found.means)


def test_the_mean_of_conditions_is_by_seed_and_a_claim_of_its_own(folder):
    found = results_of(folder)
    assert found.conditions == (*CONDITIONS, MEAN)
    mean = found.means[Key("prism", MEAN, "emd")]
    for seed in (1, 2, 3):
        each = [found.means[Key("prism", name, "emd")][seed] for name in CONDITIONS]
        assert mean[seed] == pytest.approx(sum(each) / 3)
    assert found.rate("prism", MEAN) == (9, 27)
    (claim,) = [c for c in found.other_claims if c.condition == MEAN and c.measure.field == "emd"]
    assert claim.outcome == "better"
    assert claim.comparison.difference == pytest.approx(-0.204)
    # Without one of the three there is no mean.
    for file in folder.glob("*/evaluations/payload-101.json"):
        file.unlink()
    assert results_of(folder).conditions == CONDITIONS[:2]


def tables(folder):
    report = write_report(folder)
    (chapter,) = report.chapters
    return report, {table.title: table for table in chapter.tables}


def test_emd_never_stands_without_upright(folder):
    report, found = tables(folder)
    main = found["Nominal condition"]
    headings = [heading.split(",")[0] for heading in main.columns]
    assert headings.index("EMD") == headings.index("upright") + 1
    for title in ("EMD by motion, nominal", "EMD, rad\u00a0↓"):
        for line in found[title].rows:
            for cell in line[1:]:
                assert cell.beside.startswith("upright "), (title, cell)
    text = report.markdown.read_text()
    assert "0.510 ± 0.010" not in text  # no single motion as the mean
    assert "upright 62.5 ± 0.0\u00a0%" in text
    page = report.page.read_text()
    assert page.count("upright 62.5 ± 0.0\u00a0%") == text.count("upright 62.5 ± 0.0\u00a0%")


def test_rows_of_what_needs_no_policy(folder):
    _, found = tables(folder)
    main = found["Nominal condition"]
    names = [line[0].text for line in main.rows]
    assert names == ["mlp-matched", "prism", OPEN, "default pose (no policy)", POSE]
    assert {len(line) for line in main.rows} == {len(main.columns)}
    cells = dict(zip(main.columns, main.rows[2], strict=True))
    assert cells["EMD, rad\u00a0↓"].text == "0.350"
    assert cells["upright, % of frames\u00a0↑"].text == "37.5"
    assert cells["foot slip, m/s\u00a0↓"].text == ""
    by_motion = found["EMD by motion, nominal"]
    assert [line[0].text for line in by_motion.rows] == ["stand", "wave", "mean"]
    assert by_motion.columns[:3] == ("motion", "mlp-matched", "prism")
    assert by_motion.rows[0][3].text == "0.200"


def test_report_json_has_all_of_it(folder):
    report, _ = tables(folder)
    (section,) = json.loads(report.data.read_text())["sections"]
    assert section["without_policy"][OPEN]["nominal"]["emd"] == pytest.approx(0.35)
    assert section["by_task"]["wave"]["payload"]["prism"]["upright"]["2"] == pytest.approx(25)
    arms = {arm["name"]: arm for arm in section["arms"]}
    assert set(arms["prism"]["conditions"]) == {*CONDITIONS, MEAN}


def test_shares_stay_within_their_limits(folder):
    for seed, upright in ((1, 1.0), (2, 1.0), (3, 0.2)):
        rows = {"nominal": [row("stand", 0, upright=upright), row("wave", 0, upright=upright)]}
        write(folder / f"mlp-{seed}", "mlp", seed, rows)
    _, found = tables(folder)
    (line,) = [one for one in found["Nominal condition"].rows if one[0].text == "mlp"]
    assert line[2].detail.endswith("100.0]")


def test_evaluations_on_other_clips_are_left_out_and_named(folder):
    write(folder / "other", "mlp", 9, {"nominal": [row("bow", 0)]}, clips=("bow",))
    report, _ = tables(folder)
    assert any("other clips than those of the training" in one for one in report.problems)
