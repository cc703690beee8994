"""Whatever a contract, a sensor, a policy or a clock says: a robot gets finite targets or a reason.

Exceptions other than the runner's own fail these tests, as they would on a robot.
"""

import copy
import json
import math
import shutil
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
pytest.importorskip("mujoco", reason="mujoco is not installed (extra 'locomotion')")

from prism_motor.export import runner
from prism_motor.locomotion.export import export_run
from prism_motor.runs.shipped import resolve
from tests.export.bound import read_contract, write_contract
from tests.faults.sizes import fuzz

COMMAND = np.array([0.3, 0.0, 0.2])


@dataclass(frozen=True)
class Shipped:
    """An export of a shipped policy, as it was written, and a copy to be damaged."""

    whole: Any
    damaged: Any
    contract: Any = field(repr=False)

    def restore(self):
        for name in (runner.CONTRACT, runner.POLICY, runner.MODEL):
            shutil.copyfile(self.whole / name, self.damaged / name)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contract")
    whole = export_run(resolve("g1-prism"), folder / "whole")
    return Shipped(whole, shutil.copytree(whole, folder / "damaged"), read_contract(whole))


@pytest.fixture(scope="module")
def loaded(shipped):
    return runner.load_export(shipped.whole)


# Contracts --------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, -0.0, 1e-320, 1e-6, 1e6, 1e308, -1e308, 10**400]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
    st.integers(-100, 100),
    st.floats(),
)
SCALARS = st.one_of(NUMBERS, st.none(), st.booleans(), st.text(max_size=6))
JSON = st.recursive(
    SCALARS,
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=6), part, max_size=3)
    ),
    max_leaves=6,
)


def paths_of(value, path=()):
    yield path
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield from paths_of(value[key], (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


@st.composite
def mutations(draw, contract):
    """A contract with one to three changes of any kind at any place."""
    changed = copy.deepcopy(contract)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        part = draw(st.sampled_from(sorted(changed)))
        paths = [(part, *path) for path in paths_of(changed[part])]
        numbers = [path for path in paths if is_number(at(changed, path))]
        change = draw(st.sampled_from(["delete", *["replace"] * 5, *["nudge"] * 4]))
        path = draw(st.sampled_from(numbers if numbers and change == "nudge" else paths))
        owner, key = at(changed, path[:-1]), path[-1]
        if change == "delete":
            del owner[key]
        elif change == "nudge" and numbers:
            owner[key] = draw(st.sampled_from(close_to(owner[key])))
        else:
            owner[key] = draw(other_values(owner[key], contract))
    return changed


def close_to(number):
    if abs(number) > 1e300:  # where some whole numbers are no floats
        return [0]
    return [-number, number * 1.01, number * 0.1, number * 10, number + 1, number + 0.01]


def other_values(value, contract):
    """Anything instead of a value: junk, another part of the contract, something close to it."""
    found = [JSON, st.sampled_from(PLACES).map(lambda path: copy.deepcopy(at(contract, path)))]
    if is_number(value):
        found += [NUMBERS, st.sampled_from([bool(value), str(value), [value]])]
    if isinstance(value, list):
        found.append(st.permutations(value))
        found.append(st.sampled_from([value[::-1], value[:-1], [*value, *value[-1:]], [value]]))
        found.append(JSON.map(lambda part: [*value, part]))
    if isinstance(value, dict):
        found.append(
            st.tuples(st.text(max_size=6), JSON).map(lambda new: {**value, new[0]: new[1]})
        )
    return st.one_of(found)


PLACES = [("joints",), ("control",), ("gait",), ("action",)]
"""Where values for other places are copied from."""


def same(one, other):
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@fuzz(100, 1500)
@given(data=st.data())
def test_no_changed_contract_is_accepted(shipped, data):
    changed = data.draw(mutations(shipped.contract))
    (shipped.damaged / runner.CONTRACT).write_text(json.dumps(changed))
    if same(changed, shipped.contract):
        runner.load_export(shipped.damaged)
        return
    with pytest.raises(runner.RunnerError):
        runner.load_export(shipped.damaged)


NULLABLE = ("range", "velocity_limit", "roll", "pitch", "height")
OPTIONAL = ("strides",)
"""Exports of policies that march in place have none; a file that lost them has another hash."""


def refused(contract):
    with pytest.raises(runner.RunnerError):
        runner.check_contract(contract)
    return True


def test_every_field_refuses_what_it_can_never_be(shipped):
    contract = copy.deepcopy(shipped.contract)
    runner.check_contract(contract)
    for path in list(paths_of(contract)):
        if not path or "provenance" in path:
            continue
        owner, key = at(contract, path[:-1]), path[-1]
        value = owner[key]
        junk = [True, math.nan, math.inf, -math.inf, 1e308, -1e308, 10**400, {}, [[]], ""]
        junk += [] if key in NULLABLE else [None]
        junk += ["x"] if is_number(value) else [1.5] if isinstance(value, str) else ["x", 1.5, []]
        for other in junk:
            if not (isinstance(value, bool) and isinstance(other, bool)):
                owner[key] = other
                assert refused(contract), (path, other)
        owner[key] = value
        if isinstance(value, dict):
            value["unknown"] = 1
            assert refused(contract), path
            del value["unknown"]
        if isinstance(owner, dict) and key not in OPTIONAL:
            del owner[key]
            assert refused(contract), path
            owner[key] = value
    runner.check_contract(contract)


@fuzz(100, 1500)
@given(data=st.data())
def test_a_changed_contract_that_is_bound_again_moves_within_its_limits_or_not_at_all(
    shipped, data
):
    changed = data.draw(mutations(shipped.contract))
    shipped.restore()
    write_contract(shipped.damaged, changed)
    try:
        export = runner.load_export(shipped.damaged)
        contract = export.contract
        controller = runner.Controller(contract, export.session, clock=lambda: 0.0)
        qpos, qvel = runner.draw_start(contract, 0)
    except runner.RunnerError:
        return
    event("moved")
    for _ in range(3):
        act(controller, runner.read(qpos, qvel), COMMAND)
    episode = runner.simulate(export, 3 * contract["control"]["dt"], COMMAND[None], qpos, qvel)
    assert np.isfinite(episode.actions).all()


@fuzz(100, 1500)
@given(content=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_other_file_is_a_contract(shipped, content):
    (shipped.damaged / runner.CONTRACT).write_bytes(content)
    with pytest.raises(runner.RunnerError):
        runner.load_export(shipped.damaged)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": 2, "schema": 2}', "9" * 5000])
def test_nor_is_this(shipped, text):
    test_no_other_file_is_a_contract.hypothesis.inner_test(shipped, text.encode())


def test_depth_is_no_way_around(shipped):
    """As deep as the parser allows, where contracts are free."""
    shipped.restore()
    changed = copy.deepcopy(shipped.contract)
    for depth in (100, 400, 900, 2000):
        changed["provenance"]["config"] = "mark"
        text = json.dumps(changed).replace('"mark"', "[" * depth + "]" * depth)
        (shipped.damaged / runner.CONTRACT).write_text(text)
        with pytest.raises(runner.RunnerError):
            runner.load_export(shipped.damaged)


@fuzz(60, 600)
@given(name=st.sampled_from([runner.POLICY, runner.MODEL]), data=st.data())
def test_no_changed_byte_is_accepted(shipped, name, data):
    shipped.restore()
    content = bytearray((shipped.whole / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    if change == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif change == "cut":
        del content[place:]
    else:
        content[place:place] = data.draw(st.binary(min_size=1, max_size=4))
    (shipped.damaged / name).write_bytes(content)
    with pytest.raises(runner.RunnerError, match="is not the file that was exported"):
        runner.load_export(shipped.damaged)


# Measurements, commands, policies and clocks ----------------------------------------------------


def act(controller, reading, command):
    """Make one step and check all that a robot would be told; return whether it was accepted."""
    joints = controller.contract["joints"]
    ranges = [joint["range"] or (-4 * math.pi, 4 * math.pi) for joint in joints]
    low, high = np.array(ranges, float).T
    reach = np.array([joint["torque_limit"] / joint["stiffness"] for joint in joints])
    before = controller.stopped
    try:
        targets = controller.step(reading, command)
    except runner.SafetyStop as stop:
        targets, reach, reason, cause = stop.targets, 0.0, str(stop), stop.__cause__
        assert reason == controller.stopped
        assert isinstance(cause, runner.RunnerError) == (before is None)  # no error but our own
        assert before in (None, controller.stopped)  # it says the first reason, for good
        np.testing.assert_array_equal(controller.follow(), targets)
    else:
        assert before is None
        assert controller.stopped is None
    assert targets.shape == (len(joints),)
    assert np.isfinite(targets).all()
    assert ((low - reach <= targets) & (targets <= high + reach)).all()
    torques = controller.torques(getattr(reading, "q", None), getattr(reading, "dq", None))
    assert np.isfinite(torques).all()
    assert (np.abs(torques) <= [joint["torque_limit"] for joint in joints]).all()
    return controller.stopped is None


ARRAYS = hnp.arrays(
    hnp.scalar_dtypes() | hnp.unicode_string_dtypes() | st.just(np.dtype(object)),
    st.one_of(st.just((12,)), st.just((3,)), hnp.array_shapes(min_dims=0, min_side=0)),
    fill=st.nothing(),
)
ANYTHING = st.one_of(
    ARRAYS,
    JSON,
    hnp.arrays(np.float64, st.sampled_from([12, 3]), elements=st.floats()),
    hnp.arrays(np.float32, st.sampled_from([12, 3]), elements=st.floats(width=32)),
    st.builds(object),
)
FIELDS = {"q": 12, "dq": 12, "angular_velocity": 3, "euler": 3}


@st.composite
def readings(draw, contract):
    """A plausible reading, in most cases with one thing wrong."""
    joints = contract["joints"]
    q = np.array([joint["default"] for joint in joints])
    noise = hnp.arrays(float, 12, elements=st.floats(-0.1, 0.1), fill=st.just(0.05))
    three = hnp.arrays(float, 3, elements=st.floats(-1.5, 1.5))
    reading = runner.Reading(q + draw(noise), 10 * draw(noise), draw(three), draw(three))
    wrong = draw(st.sampled_from(["nothing", "entry", "entry", "field", "all"]))
    if wrong == "all":
        return draw(ANYTHING)
    name = draw(st.sampled_from(sorted(FIELDS)))
    if wrong == "field":
        return replace(reading, **{name: draw(ANYTHING)})
    if wrong == "entry":
        limit = st.floats(-40, 40) | st.floats(-4, 4) | st.floats()
        getattr(reading, name)[draw(st.integers(0, FIELDS[name] - 1))] = draw(limit)
    return reading


def numbers(values, size):
    """Return an array of so many numbers, or None if that is not what was given."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    fits = array.dtype.kind in "fiu" and array.shape == (size,)
    return array.astype(float) if fits and np.isfinite(array.astype(float)).all() else None


def believable(reading, contract):
    """Say independently of the runner whether a reading may be acted upon."""
    found = {name: numbers(getattr(reading, name, None), size) for name, size in FIELDS.items()}
    if any(values is None for values in found.values()):
        return False
    for joint, angle, speed in zip(contract["joints"], found["q"], found["dq"], strict=True):
        low, high = joint["range"]
        if not low - 0.2 <= angle <= high + 0.2 or abs(speed) > joint["velocity_limit"]:
            return False
    roll, pitch, yaw = np.abs(found["euler"]) - 1e-3
    turning = np.abs(found["angular_velocity"]).max()
    return turning <= 35 and roll <= math.pi and pitch <= math.pi / 2 and yaw <= math.pi


@fuzz(150, 2500)
@given(data=st.data())
def test_measurements_and_commands(loaded, data):
    contract = loaded.contract
    controller = runner.Controller(contract, loaded.session, clock=lambda: 0.0)
    expected = True
    for _ in range(data.draw(st.integers(1, 3))):
        reading = data.draw(readings(contract))
        command = data.draw(st.just(COMMAND) | ANYTHING | hnp.arrays(float, 3))
        given_numbers = numbers(command, 3)
        fine = given_numbers is not None and np.abs(given_numbers).max() <= 1e30
        expected = expected and fine and believable(reading, contract)
        assert act(controller, reading, command) == expected
    controller.reset()
    rest = runner.Reading(controller.default_pose, np.zeros(12), np.zeros(3), np.zeros(3))
    assert act(controller, rest, COMMAND)


class Puppet:
    """A session of onnxruntime that answers what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def get_inputs(self):
        return [SimpleNamespace(name="observation", shape=["batch", 235])]

    def get_outputs(self):
        return [SimpleNamespace(name="action", shape=["batch", 12])]

    def run(self, names, feed):
        (seen,) = feed.values()
        assert seen.shape == (1, 235)
        assert seen.dtype == np.float32
        assert np.isfinite(seen).all()
        return self.answer


@st.composite
def answers_of_policies(draw):
    """What a session returns: one row of actions, one entry of it anything; or anything."""
    if draw(st.integers(0, 3)) == 0:
        return draw(ANYTHING | st.lists(ANYTHING, max_size=2))
    row = np.zeros((1, 12), draw(st.sampled_from([np.float32, np.float64])))
    numbers = st.floats(-5, 5) | st.sampled_from([math.nan, math.inf, -math.inf]) | st.floats()
    with np.errstate(over="ignore"):
        row[0, draw(st.integers(0, 11))] = draw(numbers)
    return [row]


@fuzz(150, 2500)
@given(answers=st.lists(answers_of_policies(), max_size=3))
def test_policies(loaded, answers):
    puppet = Puppet([np.zeros((1, 12))])
    controller = runner.Controller(loaded.contract, puppet, clock=lambda: 0.0)
    rest = runner.Reading(controller.default_pose, np.zeros(12), np.zeros(3), np.zeros(3))
    for answer in answers:
        puppet.answer = answer
        accepted = act(controller, rest, COMMAND)
        if accepted:
            assert np.shape(answer) == (1, 1, 12)
            assert np.isfinite(np.asarray(answer[0], float)).all()


@fuzz(100, 1000)
@given(times=st.lists(st.floats(0, 0.5) | st.floats(), min_size=1, max_size=6))
def test_clocks(loaded, times):
    """Control steps are never further apart than the deadline, and time never goes back."""
    now = [0.0]
    controller = runner.Controller(loaded.contract, loaded.session, clock=lambda: now[0])
    rest = runner.Reading(controller.default_pose, np.zeros(12), np.zeros(3), np.zeros(3))
    assert act(controller, rest, COMMAND)
    expected, last = True, 0.0
    for time in times:
        now[0] = time
        expected = expected and 0 <= time - last <= 5 * 0.02
        last = time
        assert act(controller, rest, COMMAND) == expected
