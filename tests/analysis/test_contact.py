import json

import numpy as np
import pytest

from prism_motor.analysis.contact import (
    ContactConfig,
    make_contenders,
    make_finding,
    make_table,
    record_contacts,
)
from prism_motor.analysis.contact_episodes import (
    SHOWN,
    ContactRecord,
)
from prism_motor.analysis.study import write_finding
from prism_motor.analysis.subjects import load_same_task
from tests.analysis.test_contact_episodes import make_episode


@pytest.fixture(scope="module")
def subjects(make_pusher):
    found, left_out = load_same_task([make_pusher("linear"), make_pusher("prism")])
    assert left_out == []
    return found


@pytest.fixture(scope="module")
def records(subjects, short_scene):
    config = ContactConfig(episodes=2, compliance=("mcc-oracle",))
    return record_contacts(make_contenders(subjects, config), short_scene, config)


def test_policies_are_recorded_alone_and_with_baselines(records, subjects):
    assert [record.arm for record in records] == ["linear", "prism", "linear + mcc-oracle"]
    assert records[2].about["compliance"] == "mcc-oracle"
    assert records[2].about["run"] == records[0].about["run"]
    for record in records:
        assert [one.initial_state for one in record.episodes] == [0, 1]
        assert all(one.contact is not None for one in record.episodes)
        assert len(record.images) == len(SHOWN)
        assert np.abs(record.images[0].astype(float) - record.images[-1]).mean() > 0.1


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
    finding = make_finding(records, short_scene.task, config)
    files = write_finding("contact", finding, config, ["a note"], tmp_path)
    assert [file.name for file in files] == ["contact.json", "contact.png", "mechanics.png"]
    data = json.loads(files[0].read_text())
    assert {"title", "caption", "table", "successful_table", "provenance"} <= set(data)
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    first = data["runs"][0]
    assert first["episodes"][0]["contact"]["impulse"] == records[0].episodes[0].contact.impulse
    assert len(first["aligned"]["force"][0]) == len(first["aligned"]["time"]) == 17
    assert first["aligned"]["force"][0][8] >= 5
    assert data["left_out"] == ["a note"]
    assert "nothing here says how training seeds differ" in data["caption"]
    assert all(file.read_bytes()[1:4] == b"PNG" for file in files[1:])


def test_impulse_and_power_are_those_of_figure_one(records, short_scene):
    """J_c(t) is the integral of F from the start, P_c is F times the speed of the hand."""
    data = make_finding(records, short_scene.task, ContactConfig(episodes=2)).data
    assert data["threshold"] == 5.0
    assert [one["arm"] for one in data["mechanics"]] == ["linear", "prism", "linear + mcc-oracle"]
    assert len({one["initial_state"] for one in data["mechanics"]}) == 1
    for one, record in zip(data["mechanics"], records, strict=True):
        episode = record.episodes[one["initial_state"]]
        trace, total = episode.trace, 0.0
        for step, (force, velocity) in enumerate(
            zip(trace.largest_force, trace.velocity, strict=True)
        ):
            total += force * trace.control_seconds
            speed = float(sum(component**2 for component in velocity) ** 0.5)
            assert one["impulse"][step] == pytest.approx(total, abs=1e-4)
            assert one["power"][step] == pytest.approx(force * speed, abs=1e-4)
        touched = one["time"].index(pytest.approx(one["first_contact"]))
        assert one["force"][touched] >= 5.0
        assert max(one["force"][:touched], default=0.0) < 5.0
        # From first contact on, the impulse grows by that of the table.
        before = one["impulse"][touched - 1] if touched else 0.0
        grown = one["impulse"][-1] - before
        assert grown == pytest.approx(episode.contact.impulse, abs=1e-3)


def test_an_arm_that_touches_nothing_is_drawn_and_listed(short_scene, tmp_path):
    record = ContactRecord("a", 1, {}, (make_episode(np.zeros(30), success=False),))
    config = ContactConfig(episodes=1)
    finding = make_finding([record], short_scene.task, config)
    assert len(write_finding("contact", finding, config, [], tmp_path)) == 3
    assert finding.data["mechanics"][0]["first_contact"] is None
    row = make_table([record], successful=False).rows[0]
    assert row[3] == "0 of 1"
    assert set(row[4:]) == {"–"}


def test_baselines_that_cannot_work_are_refused_before_anything_runs(subjects, short_scene):
    config = ContactConfig(episodes=1, compliance=("mcc-sensorless",))
    reports = []
    with pytest.raises(ValueError, match="no actuated joints"):
        record_contacts(
            make_contenders(subjects, config), short_scene, config, lambda: reports.append(1)
        )
    assert reports == []
    with pytest.raises(ValueError, match="compliance baseline"):
        ContactConfig(compliance=("mcc",))
    with pytest.raises(ValueError, match="fixed initial states"):
        record_contacts(
            make_contenders(subjects, config), short_scene, ContactConfig(episodes=1000)
        )
