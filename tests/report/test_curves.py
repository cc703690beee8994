"""Learning curves against plain computations on the metrics."""

import json

import numpy as np
import pytest

from prism_motor.domains import DOMAINS
from prism_motor.report.arms import make_sections
from prism_motor.report.charts import draw_chart, twin_labels
from prism_motor.report.collect import collect
from prism_motor.report.curves import make_chapter_curves, make_curves
from prism_motor.reporting import Axis, Quantity

from .folders import write_run

REWARD, _, FALLS = DOMAINS["locomotion"].reporting.curves
SAMPLES, MINUTES = DOMAINS["locomotion"].reporting.axes


def curves(folder, quantity=REWARD, axis=SAMPLES):
    (section,) = make_sections(collect(folder))
    return make_curves(section, quantity, axis)


def rewrite(run, rows):
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_mean_and_band_over_seeds(tmp_path):
    for seed in (1, 2, 4):
        config = write_run(tmp_path / str(seed), seed=seed)  # reward 4 * share + 0.1 * seed
    (curve,) = curves(tmp_path)
    assert curve.seeds == (1, 2, 4)
    total = config.updates * config.samples_per_update / 1e6
    assert (curve.x[0], curve.x[-1]) == pytest.approx((total / config.updates, total))
    share = curve.x / total
    assert curve.mean == pytest.approx(4 * share + 0.7 / 3)
    assert curve.low == pytest.approx(4 * share + 0.1)
    assert curve.high == pytest.approx(4 * share + 0.4)


def test_a_mean_ends_where_the_first_seed_ends_and_time_is_in_minutes(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2)
    rows = [json.loads(line) for line in (tmp_path / "b" / "metrics.jsonl").open()]
    rewrite(tmp_path / "b", [{**row, "seconds": 0.75 * row["update"]} for row in rows])
    (curve,) = curves(tmp_path, axis=MINUTES)
    assert curve.x[-1] == pytest.approx(0.75 * 20 / 60)


def test_unfinished_runs_are_lines_of_their_own(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2, updates=10)
    write_run(tmp_path / "c", seed=3, updates=0)
    whole, part = curves(tmp_path)
    assert (whole.seeds, whole.finished, part.seeds, part.finished) == ((1,), True, (2,), False)


def test_times_between_events_are_averaged_as_rates(tmp_path):
    write_run(tmp_path / "a", updates=400, planned=400)
    rows = [{"update": i, "samples": i, "seconds_between_falls": 1.0 if i % 2 else 100.0}
            for i in range(1, 401)]  # fmt: skip
    rewrite(tmp_path / "a", rows)
    (curve,) = curves(tmp_path, FALLS, Axis("samples", "", 1.0))
    between = 2 / (1 / 1.0 + 1 / 100.0)  # two updates, 1 fall a second and one in a hundred
    assert curve.mean.mean() == pytest.approx(between, rel=0.1)


def test_rows_without_a_value_are_left_out(tmp_path):
    write_run(tmp_path / "a")
    rewrite(tmp_path / "a", [{"update": i, "samples": i, "x": v}
                             for i, v in enumerate([1.0, None, float("nan"), 4.0])])  # fmt: skip
    quantity, axis = Quantity("x", "x", ""), Axis("samples", "n", 1.0)
    (curve,) = curves(tmp_path, quantity, axis)
    assert curve.mean == pytest.approx(1 + curve.x)
    assert curves(tmp_path, Quantity("y", "y", ""), axis) == []
    assert make_chapter_curves(make_sections(collect(tmp_path))[0]) is None


def test_a_chart_draws_inside_its_frame(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / str(seed), seed=seed)
    found = curves(tmp_path, FALLS)
    chart = draw_chart(found, FALLS, SAMPLES, {"prism": "#D55E00"})
    path = chart.svg.split('class="line" d="M')[1].split('"')[0]
    points = np.array([point.split(",") for point in path.split()], dtype=float)
    assert points[:, 0].min() >= 36
    assert points[:, 0].max() <= 352
    assert points[:, 1].min() >= 26
    assert points[:, 1].max() <= 200
    assert np.all(np.diff(points[:, 1]) <= 0)  # more time between falls is higher up
    assert chart.svg.count("band") == 1
    assert len(chart.data["curves"][0]["mean"]) == len(points)


def test_arms_that_share_a_colour_are_drawn_with_dashes():
    colours = {"a": "#111111", "b": "#222222", "c": "#111111"}
    assert twin_labels(colours) == {"c"}
