import json

import numpy as np
import pytest

from prism_motor.analysis.recording import CommandScript
from prism_motor.analysis.scripts import TOUR, make_script, read_script
from prism_motor.analysis.subjects import load_subjects
from prism_motor.analysis.traces import (
    PolicyTrace,
    TraceConfig,
    in_world,
    make_table,
    record_traces,
)
from prism_motor.cli import main
from prism_motor.locomotion.tasks import TASKS

SCRIPT = CommandScript(((0.0, 0.0, 0.0, 0.0), (0.5, 0.4, 0.1, 0.2)), seconds=1.2)


@pytest.fixture(scope="module")
def walking(make_run):
    subjects, _ = load_subjects([make_run("mlp"), make_run("prism")])
    return record_traces(subjects, SCRIPT, TraceConfig(envs=2))


def test_all_policies_hear_the_same_and_begin_alike(walking):
    one, two = walking
    np.testing.assert_array_equal(one.commands, two.commands)
    assert one.time[0] == pytest.approx(0.02)
    assert one.time[-1] == pytest.approx(1.2)
    told = np.where(one.time[:, None] < 0.5 - 1e-9, 0.0, [[0.4, 0.1, 0.2]])
    np.testing.assert_allclose(one.commands, told, rtol=1e-6)
    # The first step is nearly the same, later ones are not.
    height = [trace.quantities["base_height"] for trace in walking]
    np.testing.assert_allclose(height[0][:, 0], height[1][:, 0], atol=1e-3)
    assert not np.array_equal(height[0], height[1])
    assert one.robots == 2
    assert one.fallen == 0


def test_errors_are_against_the_script(walking):
    trace = walking[0]
    actual = [trace.quantities[n] for n in ("velocity_forward", "velocity_sideways")]
    expected = np.hypot(*(trace.commands[:, i] - actual[i] for i in range(2)))
    np.testing.assert_allclose(trace.quantities["tracking_error"], expected, atol=1e-5)
    assert trace.mean("tracking_error") == pytest.approx(expected.mean(), abs=1e-5)


def test_nothing_is_kept_after_a_fall(make_run):
    subjects, _ = load_subjects([make_run("mlp", "laptop")])  # untrained: it falls soon
    (trace,) = record_traces(subjects, make_script(seconds=4.0), TraceConfig(envs=3))
    assert trace.fallen == 3
    walked = np.isfinite(trace.quantities["joint_power"])
    for robot in walked:
        steps = robot.sum()
        assert 0 < steps < 200
        assert robot[:steps].all()
    assert np.isfinite(trace.mean("joint_power"))
    assert make_table([trace]).rows[0][:3] == ["mlp", "1", "3 of 3"]


def test_smoothing_is_the_mean_of_the_past_cycle():
    values = np.random.default_rng(0).normal(size=(2, 30))
    values[1, 20:] = np.nan
    trace = PolicyTrace(
        subject=None,  # type: ignore[arg-type]
        time=0.1 * np.arange(1, 31),
        commands=np.zeros((30, 3)),
        quantities={"x": values},
        cycle=0.5,
        fallen=1,
    )
    found = trace.smooth("x")
    assert np.isnan(found[:, :4]).all()
    for t in range(4, 30):
        np.testing.assert_allclose(found[0, t], values[0, t - 4 : t + 1].mean())
    np.testing.assert_allclose(found[1, 19], values[1, 15:20].mean())
    assert np.isnan(found[1, 20:]).all()


def test_world_is_that_of_the_first_and_senses_stay_their_own():
    task = in_world(TASKS["g1"], TASKS["laptop"])
    assert task.observations == TASKS["g1"].observations
    assert task.simulation == TASKS["g1"].simulation
    assert task.randomisation == TASKS["laptop"].randomisation


def test_the_tour_stays_within_the_training(make_policy):
    limits = make_policy("mlp", "laptop").config.task.commands
    for _, forward, sideways, yaw in TOUR.points:
        assert limits.forward[0] <= forward <= limits.forward[1]
        assert limits.sideways[0] <= sideways <= limits.sideways[1]
        assert abs(yaw) <= limits.yaw_limit


def test_a_fixed_forward_command_and_turns_that_were_trained(tmp_path):
    config = TraceConfig(forward=0.5, seconds=2.0, detail=(0.5, 1.0))
    assert config.commands().points == ((0.0, 0.5, 0.0, 0.0),)
    tour = TraceConfig().commands(TASKS["paper"].commands.turn_limit)
    assert max(abs(yaw) for *_, yaw in tour.points) == 0.3
    assert TraceConfig().commands(TASKS["laptop"].commands.turn_limit) == TOUR
    with pytest.raises(ValueError, match="not both"):
        TraceConfig(forward=0.5, script=tmp_path / "script.txt")


def test_scripts_from_files(tmp_path):
    file = tmp_path / "script.txt"
    file.write_text("# time forward sideways yaw\n0, 0.1, 0, 0\n\n1.5 0.2 0.1 -0.3  # faster\n")
    assert read_script(file, 3.0).points == ((0, 0.1, 0, 0), (1.5, 0.2, 0.1, -0.3))
    file.write_text("0 0.1 0 0\n1 fast 0 0\n")
    with pytest.raises(ValueError, match=r"script.txt, line 2: expected .* four numbers"):
        read_script(file, 3.0)
    with pytest.raises(ValueError, match="There is no script"):
        read_script(tmp_path / "nowhere.txt", 3.0)
    file.write_text("")
    with pytest.raises(ValueError, match="times must start at 0"):
        read_script(file, 3.0)


def test_command_writes_what_it_says(make_run, tmp_path, capsys):
    runs = [
        make_run("mlp"),
        make_run("prism"),
        make_run("prism", seed=2),
        make_run(preset="laptop"),
    ]
    options = ["--seconds", "1.5", "--detail", "0.5", "1.0", "--envs", "2"]
    main(["traces", *map(str, runs), *options, "--out", str(tmp_path / "traces")])
    data = json.loads((tmp_path / "traces" / "traces.json").read_text())
    assert {"title", "caption", "table", "runs", "provenance"} <= set(data)
    assert [row[:2] for row in data["table"]["rows"]] == [["mlp", "1"], ["prism", "2"]]
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    assert "moves the robot g1" in data["left_out"][0]
    run = data["runs"][0]
    assert len(run["time"]) == len(run["commands"]["command_yaw"]) == 75
    assert len(run["detail"]["time"]) == len(run["detail"]["slip_velocity"]) == 26
    # The paper's slip is that of all feet, whether they touch the ground or not.
    feet, touching = (run["detail"][name] for name in ("foot_speed", "slip_velocity"))
    assert all(one >= two for one, two in zip(feet, touching, strict=True) if one is not None)
    assert data["left_out"][0] in capsys.readouterr().out
    for name in ("tracking", "mechanics"):
        assert (tmp_path / "traces" / f"{name}.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--detail", "3", "2"], "must start before it ends"),
        (["--detail", "3", "25"], "lie within the script's 20 s"),
        (["--seconds", "1000"], "seconds must be above 0 and at most 600"),
        (["--condition", "windy"], "Unknown condition"),
        (["--envs", "0"], "envs must be from 1"),
    ],
)
def test_requests_without_sense_are_refused(options, message, make_run, capsys):
    with pytest.raises(SystemExit):
        main(["traces", str(make_run("mlp")), *options])
    assert message in capsys.readouterr().err
