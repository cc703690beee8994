import json

import numpy as np
import pytest

from prism_motor.analysis.contact_figure import crop
from prism_motor.analysis.contact_files import make_table, write_contacts
from prism_motor.analysis.contact_records import (
    SHOWN,
    Episode,
    Record,
    aligned,
    measure,
    typical,
)
from prism_motor.analysis.contact_study import ContactConfig, make_contenders, record_contacts
from prism_motor.analysis.manipulators import is_manipulation, load_manipulators
from prism_motor.manipulation.contact import ContactTrace, diagnose
from prism_motor.manipulation.rollout import HandlingOutcome
from prism_motor.runs import RunError

DT = 0.05


def make_episode(force, success=True, state=0):
    force = np.asarray(force, float)
    velocity = np.ones((len(force), 3))
    trace = ContactTrace(
        control_seconds=DT,
        actions=np.zeros((len(force), 7)),
        position=(velocity * DT).cumsum(0),
        displacement=velocity * DT,
        velocity=velocity,
        force=np.zeros((len(force), 3)),
        largest_force=force,
    )
    outcome = HandlingOutcome(success, len(force), 0.0, 0.0, 0.0)
    return Episode(state, outcome, trace, diagnose(trace))


def bump(height, at=10, steps=30):
    return np.where((np.arange(steps) >= at) & (np.arange(steps) < at + 3), height, 0.0)


def test_alignment_puts_all_first_contacts_at_one_place():
    record = Record("a", 1, {}, tuple(make_episode(bump(h, at)) for h, at in ((10, 9), (30, 20))))
    found = aligned([record], "largest_force")
    np.testing.assert_array_equal(found[:, 8:11], [[10] * 3, [30] * 3])
    assert np.nanmax(found[:, :8]) == 0


def test_episodes_without_contact_count_in_no_mean():
    record = Record("a", 1, {}, (make_episode(bump(10)), make_episode(np.zeros(30))))
    found = measure([record], "peak_force", successful=False)
    assert found is not None
    assert (found.value, found.low) == (10.0, None)
    empty = Record("a", 1, {}, (make_episode(np.zeros(30)),))
    assert measure([empty], "peak_force", successful=False) is None
    assert len(aligned([empty], "speed")) == 0


def test_successful_episodes_alone():
    episodes = (make_episode(bump(10)), make_episode(bump(50), success=False))
    record = Record("a", 1, {}, episodes)
    every = measure([record], "peak_force", successful=False)
    solved = measure([record], "peak_force", successful=True)
    assert every is not None
    assert solved is not None
    assert (every.value, solved.value) == (30.0, 10.0)
    assert every.low is not None
    assert every.low < 30 < every.high


def test_training_seeds_are_averaged_before_their_spread_is_taken():
    records = [
        Record("a", seed, {}, (make_episode(bump(h)), make_episode(bump(h + 4))))
        for seed, h in ((1, 10), (2, 20))
    ]
    found = measure(records, "peak_force", successful=False)
    assert found is not None
    assert found.value == 17.0
    assert found.high is not None
    assert found.high - found.value == pytest.approx(np.std([12, 22], ddof=1))
    assert found.write(1) == "17.0 ± 7.1"


def test_the_typical_episode_has_the_median_force_of_the_successful_ones():
    heights = ((10, True), (99, False), (30, True), (20, True))
    episodes = [make_episode(bump(h), ok, i) for i, (h, ok) in enumerate(heights)]
    found = typical(episodes)
    assert found is not None
    assert found.initial_state == 3
    failed = typical(episodes[1:2])
    assert failed is not None
    assert typical([make_episode(np.zeros(5))]) is None


def test_pictures_are_cropped_to_what_moves():
    still = np.full((100, 100, 3), 90, np.uint8)
    moved = still.copy()
    moved[70:90, 10:30] = 200
    assert crop([still, moved, still]) == (slice(50, 100), slice(0, 50))
    moved[5:95] = 200
    assert crop([still, moved]) == (slice(0, 100), slice(0, 100))
    assert crop([still, still]) == (slice(0, 100), slice(0, 100))


@pytest.fixture(scope="module")
def manipulators(make_pusher):
    found, left_out = load_manipulators([make_pusher("linear"), make_pusher("prism")])
    assert left_out == []
    return found


@pytest.fixture(scope="module")
def records(manipulators, short_scene):
    config = ContactConfig(episodes=2, compliance=("mcc-oracle",))
    return record_contacts(make_contenders(manipulators, config), short_scene, config)


def test_policies_are_recorded_alone_and_with_baselines(records, manipulators):
    assert [record.arm for record in records] == ["linear", "prism", "linear + mcc-oracle"]
    assert records[2].about["compliance"] == "mcc-oracle"
    assert records[2].about["run"] == records[0].about["run"]
    for record in records:
        assert [one.initial_state for one in record.episodes] == [0, 1]
        assert all(one.contact is not None for one in record.episodes)
        assert len(record.pictures) == len(SHOWN)
        assert np.abs(record.pictures[0].astype(float) - record.pictures[-1]).mean() > 0.1


def test_the_oracle_yields_in_a_real_simulator(records):
    plain, yielding = records[0].episodes[0], records[2].episodes[0]
    touch = int(np.argmax(plain.trace.largest_force > 0))
    # Until something is touched nothing differs; then the corrected action goes less far forward.
    np.testing.assert_array_equal(
        plain.trace.actions[: touch + 1], yielding.trace.actions[: touch + 1]
    )
    after = slice(plain.contact.step + 2, plain.contact.step + 6)
    assert (yielding.trace.actions[after, 1] < plain.trace.actions[after, 1]).all()


def test_files_hold_what_was_measured(records, short_scene, tmp_path):
    config = ContactConfig(episodes=2)
    files = write_contacts(records, short_scene.task, config, ["a note"], tmp_path)
    assert [file.name for file in files] == ["contact.json", "contact.png"]
    data = json.loads(files[0].read_text())
    assert {"title", "caption", "table", "successful_table", "provenance"} <= set(data)
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    first = data["runs"][0]
    assert first["episodes"][0]["contact"]["impulse"] == records[0].episodes[0].contact.impulse
    assert len(first["aligned"]["force"][0]) == len(first["aligned"]["time"]) == 17
    assert first["aligned"]["force"][0][8] >= 5
    assert data["left_out"] == ["a note"]
    assert "nothing here says how training seeds differ" in data["caption"]
    assert files[1].read_bytes()[1:4] == b"PNG"


def test_an_arm_that_touches_nothing_is_drawn_and_listed(short_scene, tmp_path):
    record = Record("a", 1, {}, (make_episode(np.zeros(30), success=False),))
    write_contacts([record], short_scene.task, ContactConfig(episodes=1), [], tmp_path)
    row = make_table([record], successful=False)["rows"][0]
    assert row[3] == "0 of 1"
    assert set(row[4:]) == {"–"}


def test_baselines_that_cannot_work_are_refused_before_anything_runs(manipulators, short_scene):
    config = ContactConfig(episodes=1, compliance=("mcc-sensorless",))
    reports = []
    with pytest.raises(ValueError, match="no actuated joints"):
        record_contacts(
            make_contenders(manipulators, config), short_scene, config, lambda: reports.append(1)
        )
    assert reports == []
    with pytest.raises(ValueError, match="compliance baseline"):
        ContactConfig(compliance=("mcc",))
    with pytest.raises(ValueError, match="fixed initial states"):
        record_contacts(make_contenders(manipulators, config), short_scene, ContactConfig(1000))


def test_runs_of_another_task_are_left_out(make_pusher, make_run, tmp_path):
    other = make_pusher("prism", task="reach-v3")
    found, left_out = load_manipulators([make_pusher("prism"), other, make_run("mlp")])
    assert [one.arm for one in found] == ["prism"]
    unlike, foreign = sorted(left_out, key=lambda why: "is not a run" in why)
    assert "reach-v3" in unlike
    assert "is not a run of prism train manipulation" in foreign
    assert is_manipulation(other)
    assert not is_manipulation(make_run("mlp"))
    assert not is_manipulation(tmp_path)
    with pytest.raises(RunError, match="no policy to analyse"):
        load_manipulators([make_run("mlp")])


def test_runs_that_differ_in_more_than_the_seed_are_called_by_folder(make_pusher):
    seeds, _ = load_manipulators([make_pusher("prism"), make_pusher("prism", seed=2)])
    assert [one.arm for one in seeds] == ["prism", "prism"]
    assert [one.seed for one in seeds] == [1, 2]
    with pytest.raises(ValueError, match="every run once"):
        load_manipulators([make_pusher("prism")] * 2)
