"""Which engine steps the robots, and what is said where it cannot."""

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor._extras import MissingExtraError
from prism_motor.sim import engines, warp_engine
from prism_motor.sim.contacts import MOST_CONTACTS, count_contacts, find_room
from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.engines import EngineChoice, resolve_engine
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model


@pytest.mark.parametrize(
    ("device", "installed", "expected"),
    [("cpu", True, "cpu"), ("cuda", False, "cpu"), ("cuda:1", True, "gpu"), ("mps", True, "cpu")],
)
def test_auto_is_the_gpu_where_it_can_be_used(device, installed, expected, monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda _: installed or None)
    assert resolve_engine("auto", device) == expected


def test_without_the_package_the_extra_is_named(monkeypatch):
    def fail(name):
        raise ImportError(name=name)

    monkeypatch.setattr(warp_engine.importlib, "import_module", fail)
    with pytest.raises(MissingExtraError, match=r"Python 3.11.*pip install 'prism-motor\[gpu\]'"):
        resolve_engine("gpu", "cpu")


def test_other_devices_are_refused():
    with pytest.raises(InputError, match=r"gpu computes on cuda, .* not on mps.* --engine cpu"):
        resolve_engine("gpu", "mps")


def test_the_cpu_engine_is_on_the_cpu_whatever_learns():
    choice = EngineChoice("cpu", "cuda")
    assert choice.task_device == "cpu"
    made = choice.make(make_robot("quadruped"), 1, timestep=0.005, substeps=2, solver=1)
    assert isinstance(made, RolloutEngine)
    assert made.model.opt.iterations == 5


def test_room_is_what_the_geometry_can_need():
    # Eight spheres under the feet, two capsules on the trunk; four rows each and twelve limits.
    g1 = build_model(make_robot("g1"), timestep=0.001)
    assert count_contacts(g1) == 12
    room = find_room(g1)
    assert (room.contacts, room.rows) == (12, 12 * 4 + 12)
    asked = find_room(g1, 30)
    assert (asked.contacts, asked.rows) == (30, 30 * 4 + 12)
    whole = build_model(make_robot("g1-29"), timestep=0.005)
    assert count_contacts(whole) > MOST_CONTACTS == find_room(whole).contacts
    rows = find_room(whole).rows - 4 * MOST_CONTACTS
    assert rows == 29 + np.count_nonzero(whole.dof_frictionloss)
