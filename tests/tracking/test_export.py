"""An exported tracking policy does what the evaluated one does, and nothing can be mixed up."""

import copy
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import mujoco
import numpy as np
import onnx
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from prism_motor.cli import main
from prism_motor.export import runner
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.sim.robots import make_robot
from prism_motor.tracking import export as exporting
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.evaluation import cut_pieces, measure, policy_controller, track
from prism_motor.tracking.export import export_run
from prism_motor.tracking.learning.networks import ACTOR_STREAMS, GOAL_STREAMS
from prism_motor.tracking.loading import load_policy
from prism_motor.tracking.observations import Layout
from prism_motor.tracking.references import load_references
from prism_motor.tracking.task import NOMINAL
from tests.export.bound import read_contract
from tests.tracking.tiny import make_run

ARMS = ("prism", "mlp")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made = {}

    def make(arm):
        if arm not in made:
            made[arm] = make_run(tmp_path_factory.mktemp(arm) / "run", arm)
        return made[arm]

    return make


@pytest.fixture(scope="module")
def exports(runs):
    made = {}

    def make(arm="prism"):
        if arm not in made:
            made[arm] = export_run(runs(arm)).folder
        return made[arm]

    return make


@pytest.fixture
def contract(exports):
    return read_contract(exports())


def load_lenient(folder):
    """Read an export for a robot that falls: hands that hit the ground are too fast for it."""
    export = runner.load_export(folder)
    contract = copy.deepcopy(export.contract)
    for joint in contract["joints"]:
        joint["velocity_limit"] = 100.0
    contract["safety"] |= {"position_tolerance": 1.0, "angular_velocity": 100.0}
    return replace(export, contract=contract)


# The same policy --------------------------------------------------------------------------------


class Evaluated:
    """A whole clip under the controller of ``prism eval``, state by state."""

    def __init__(self, run, clip):
        loaded = load_policy(run)
        task = replace(loaded.config.task, randomisation=NOMINAL)
        self.references = references = load_references(task)
        (piece,) = [p for p in cut_pieces(references, 1e4, task.control_dt) if p.clip == clip]
        control = policy_controller(loaded.policy, references, task.ahead)
        (self.tracked,) = track(control, task, references, [piece])
        # Once more, with all that a robot would measure.
        endless = replace(task.starts, lying=0.0, duration=1000.0, after_fall=None)
        env = TrackingEnv(replace(task, starts=endless), references, 1)
        env.begin_at(torch.tensor([piece.first]))
        self.states, self.actions, self.seen, self.targets = [], [], [], []
        with torch.inference_mode():
            for step in range(piece.frames - 1):
                self.states.append((env.engine.qpos[0].copy(), env.engine.qvel[0].copy()))
                self.seen.append(env.observations[0].numpy().copy())
                actions = control(env.observations, torch.tensor([piece.first + step]))
                self.actions.append(actions[0].numpy())
                env.step(actions)
                self.targets.append(env.engine._targets[0].copy())
        np.testing.assert_array_equal(env.engine.qpos[0], self.tracked.qpos[-1])


@pytest.mark.parametrize("arm", ARMS)
def test_along_the_states_of_a_whole_clip_actions_and_targets_agree(runs, exports, arm):
    evaluated = Evaluated(runs(arm), "wave")
    export = load_lenient(exports(arm))
    tracker = runner.Tracker(export.contract, export.session, clock=lambda: 0.0)
    clip = export.clips["wave"]
    assert len(evaluated.states) == len(clip.qpos) - 1 > 300
    size = export.contract["observation"]["size"]
    for step, (qpos, qvel) in enumerate(evaluated.states):
        targets = tracker.step(runner.read(qpos, qvel), clip.latent(step))
        np.testing.assert_allclose(tracker.action, evaluated.actions[step], atol=1e-5)
        np.testing.assert_allclose(targets, evaluated.targets[step], atol=1e-5)
        seen = tracker._observe(tracker._past)[0]
        np.testing.assert_allclose(seen, evaluated.seen[step][:size], atol=1e-6)
    assert np.ptp(evaluated.actions, axis=0).max() > 0.05


def test_a_free_run_is_that_of_the_evaluation(runs, exports):
    """The robot falls, as this policy has learned nothing, which amplifies rounding."""
    evaluated = Evaluated(runs("prism"), "wave")
    found = measure(evaluated.tracked, evaluated.references, 0.02)
    export = load_lenient(exports())
    tracked = runner.track(export, export.clips["wave"])
    assert tracked.stop is None
    np.testing.assert_allclose(tracked.actions[:10], evaluated.actions[:10], atol=1e-5)
    assert tracked.upright.mean() == pytest.approx(found["upright"], abs=0.02)
    assert tracked.emd == pytest.approx(found["emd"], abs=0.05)
    short = runner.track(export, export.clips["wave"], 0.4)
    assert (len(short.actions), len(short.upright), short.seconds) == (20, 21, pytest.approx(0.4))


def test_physics_is_that_of_the_evaluation(runs, exports):
    evaluated = Evaluated(runs("prism"), "wave")
    export = runner.load_export(exports())
    data = mujoco.MjData(export.model)
    data.qpos[:], data.qvel[:] = evaluated.states[0]
    for targets, (qpos, qvel) in zip(evaluated.targets[:50], evaluated.states[1:51], strict=True):
        runner.parts.simulation.advance(export.contract["control"], export.model, data, targets)
        np.testing.assert_allclose(data.qpos, qpos, rtol=0, atol=1e-12)
        np.testing.assert_allclose(data.qvel, qvel, rtol=0, atol=1e-9)


@pytest.mark.parametrize("arm", ARMS)
def test_both_networks_are_those_of_the_policy(runs, exports, arm):
    policy = load_policy(runs(arm)).policy
    export = runner.load_export(exports(arm))
    layout = policy.layout
    seen = torch.randn(16, layout.size, generator=torch.Generator().manual_seed(1))
    latents = policy.encode(seen)
    goals = layout.select(seen, GOAL_STREAMS).numpy()
    np.testing.assert_allclose(runner.encode(export, goals), latents.numpy(), atol=1e-5)
    feed = {"observation": seen[:, : layout.width(ACTOR_STREAMS)].numpy()}
    found = export.session.run(None, {**feed, "latent": latents.numpy()})[0]
    with torch.no_grad():
        np.testing.assert_allclose(found, policy(seen, latents).numpy(), atol=1e-5)
    with pytest.raises(runner.RunnerError, match=r"rows of 227 finite numbers, got .*\(16, 3\)"):
        runner.encode(export, goals[:, :3])


def test_latents_of_the_clips_are_what_the_backward_map_says_of_the_next_frames(runs, exports):
    policy = load_policy(runs("prism")).policy
    export = runner.load_export(exports())
    references = load_references(load_policy(runs("prism")).config.task)
    seen = references.observations(policy.layout, references.names.index("wave"))
    goals = policy.layout.select(seen, GOAL_STREAMS).numpy()
    found, clip = runner.encode(export, goals), export.clips["wave"]
    # The mean of the next eight, fewer at the end, on the sphere again.
    means = np.array([found[t + 1 : t + 9].mean(axis=0) for t in range(len(found) - 1)])
    means *= np.sqrt(found.shape[1]) / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(clip.latents[:-1], means, atol=1e-5)
    np.testing.assert_array_equal(clip.latents[-1], clip.latents[-2])
    np.testing.assert_array_equal(clip.latent(10**6), clip.latents[-1])
    np.testing.assert_allclose(np.linalg.norm(clip.latents, axis=1), np.sqrt(found.shape[1]), 1e-5)


def test_emd_is_exact():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        found, wanted = random.normal(size=(2, size, 29))
        costs = np.linalg.norm(found[:, None] - wanted, axis=-1)
        best = costs[linear_sum_assignment(costs)].mean()
        assert runner.earth_movers_distance(found, wanted) == pytest.approx(best, rel=1e-9)
    assert runner.earth_movers_distance(found, found[::-1]) == pytest.approx(0.0, abs=1e-6)


# The contract -----------------------------------------------------------------------------------


def test_every_entry_has_its_name_and_scale(contract):
    view, goal, layout = contract["observation"], contract["goal"], Layout(compact=True, steps=2)
    assert (view["size"], goal["size"]) == (279, 227)
    assert view["names"] == [name for s in ACTOR_STREAMS for name in layout.names[s]]
    assert goal["names"] == [name for s in GOAL_STREAMS for name in layout.names[s]]
    places = [(b["source"], b["age"], b["first"], b["size"], b["scale"]) for b in view["blocks"]]
    assert places[:6] == [
        ("joint_position_from_default", 0, 0, 29, 1.0),
        ("joint_velocity", 0, 29, 29, 1.0),
        ("gravity", 0, 58, 3, 1.0),
        ("base_angular_velocity", 0, 61, 3, 0.25),
        ("last_action", 0, 64, 29, 1.0),
        ("last_action", 1, 93, 29, 1.0),
    ]
    history = [(source, age) for source, age, *_ in places[5:]]
    keys = "last_action base_angular_velocity joint_position_from_default joint_velocity gravity"
    assert history == [(key, age) for key in keys.split() for age in (1, 2)]
    for block in view["blocks"]:
        names = view["names"][block["first"] : block["first"] + block["size"]]
        assert all(name.endswith(f"[t-{block['age']}]") == (block["age"] > 0) for name in names)
    assert (view["names"][0], view["names"][-1]) == ("q_left_hip_pitch", "gravity_z[t-2]")


def test_drives_rates_units_and_clips(contract, runs):
    robot = make_robot("g1-29")
    joints = contract["joints"]
    assert [joint["name"] for joint in joints] == list(robot.joint_names)
    assert [joint["default"] for joint in joints] == robot.default_pose.tolist()
    assert [joint["stiffness"] for joint in joints] == [j.stiffness for j in robot.joints]
    assert [joint["torque_limit"] for joint in joints] == [j.torque_limit for j in robot.joints]
    control = contract["control"]
    assert (control["rate"], control["timestep"], control["substeps"]) == (50.0, 0.005, 4)
    loaded = load_policy(runs("prism"))
    assert contract["action"]["units"] == list(loaded.config.task.units)
    assert contract["latent"]["length"] ** 2 == pytest.approx(loaded.config.networks.latent)
    assert [clip["name"] for clip in contract["clips"]] == ["stand", "wave"]
    assert all(clip["licence"] for clip in contract["clips"])
    assert contract["provenance"]["policy_sha256"] == hash_weights(loaded.policy.state_dict())


def test_no_action_asks_for_more_than_targets_may_be(contract):
    """The clamp is a safeguard; it changes nothing that was trained, whatever the units."""
    units = [1.25 * joint["torque_limit"] / joint["stiffness"] for joint in contract["joints"]]
    reach = contract["action"]["reach"]
    for joint, unit in zip(contract["joints"], units, strict=True):
        low, high = joint["range"]
        room = reach * joint["torque_limit"] / joint["stiffness"]
        assert low - room <= joint["default"] - unit
        assert joint["default"] + unit <= high + room


def test_contract_and_files_are_bound_to_each_other(contract, exports):
    files = {"policy": "policy.onnx", "model": "robot.xml", "backward": "backward.onnx"}
    for key, name in {**files, "clips": "clips.npz"}.items():
        digest = hashlib.sha256((exports() / name).read_bytes()).hexdigest()
        assert contract["binding"][f"{key}_sha256"] == digest
    model = onnx.load(exports() / "policy.onnx")
    embedded = {entry.key: entry.value for entry in model.metadata_props}
    del contract["binding"]  # which holds the hash of this very file
    assert json.loads(embedded["contract"]) == contract
    assert [entry.name for entry in model.graph.input] == ["observation", "latent"]


@pytest.mark.parametrize("name", ["backward.onnx", "clips.npz"])
def test_files_of_another_policy_are_refused(exports, tmp_path, name):
    """Latents of one policy mean nothing to another."""
    mixed = shutil.copytree(exports(), tmp_path / "mixed")
    shutil.copyfile(exports("mlp") / name, mixed / name)
    with pytest.raises(runner.RunnerError, match=f"{name} is not the file that was exported"):
        runner.load_export(mixed)
    (mixed / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"no {name}"):
        runner.load_export(mixed)


def test_too_many_frames_leave_clips_out(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "MOST_FRAMES", 450)
    main(["export", str(runs("prism")), "--out", str(tmp_path / "out")])
    assert "Left out, beyond 450 frames: wave" in capsys.readouterr().out
    assert list(runner.load_export(tmp_path / "out").clips) == ["stand"]


# The command ------------------------------------------------------------------------------------


def test_a_copy_tracks_without_prism_and_torch(exports, tmp_path):
    shutil.copytree(exports(), tmp_path / "robot")
    code = (
        "import runpy, sys\n"
        "sys.argv = ['runner.py', '.', '--clip', 'wave', '--seconds', '0.5']\n"
        "runpy.run_path('runner.py', run_name='__main__')\n"
        "print('LOADED', sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, cwd=tmp_path / "robot", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "clip          wave (also: stand)\ntracked       0.50 s of 0.50 s\n" in done.stdout
    assert "upright       100.0% of 26 frames\nEMD " in done.stdout
    loaded = eval(done.stdout.split("LOADED ")[1])
    assert not {"prism_motor", "torch", "scipy"} & set(loaded)


def test_sim2sim_tracks_and_refuses_what_is_for_walking(exports, capsys):
    main(["sim2sim", str(exports()), "--seconds", "0.2"])
    assert "clip          stand" in capsys.readouterr().out
    for words, message in (
        (["--clip", "dance"], "there is no 'dance'; this export has: stand, wave"),
        (["--command", "0", "0", "0"], "--command is for walking"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["sim2sim", str(exports()), *words])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
