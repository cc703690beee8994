import hashlib
import json
import shutil

import numpy as np
import onnx
import pytest
import torch

from prism_motor.cli import main
from prism_motor.export.folder import measure_latency
from prism_motor.locomotion.export import export_run
from prism_motor.locomotion.policy import load_policy
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.sim.robots import make_robot


@pytest.fixture
def contract(exports):
    return json.loads((exports("g1") / "contract.json").read_text())


def test_an_export_has_its_files_and_nothing_is_left_beside_it(
    exports,
):
    folder = exports("quadruped")
    names = {file.name for file in folder.iterdir()}
    assert names == {"contract.json", "policy.onnx", "robot.xml", "runner.py", "runner_parts"}
    assert all(file.suffix == ".py" for file in (folder / "runner_parts").iterdir())
    assert not list(folder.parent.glob(".export*"))


def test_joints_carry_their_drives(contract):
    robot = make_robot("g1")
    joints = contract["joints"]
    assert [joint["name"] for joint in joints] == [joint.name for joint in robot.joints]
    assert [joint["default"] for joint in joints] == [-0.1, 0.0, 0.0, 0.3, -0.2, 0.0] * 2
    assert [joint["stiffness"] for joint in joints][:6] == [100, 100, 100, 150, 40, 40]
    assert [joint["damping"] for joint in joints][:6] == [2, 2, 2, 4, 2, 2]
    limits = [0.85 * effort for effort in (88, 139, 88, 139, 50, 50)] * 2
    assert [joint["torque_limit"] for joint in joints] == limits
    assert [joint["velocity_limit"] for joint in joints] == [32, 20, 32, 20, 37, 37] * 2
    assert [joints[i]["range"] for i in (1, 3, 7)] == [
        [-0.5236, 2.9671],
        [-0.087267, 2.8798],
        [-2.9671, 0.5236],  # mirrored
    ]


def test_observation_layout(contract):
    view = contract["observation"]
    assert (view["frames"], view["frame_size"], view["size"], view["clip"]) == (15, 47, 705, 18.0)
    layout = [(block["source"], block["size"], block["scale"]) for block in view["blocks"]]
    assert layout == [
        ("clock", 2, 1.0),
        ("planar_command", 2, 2.0),
        ("yaw_rate_command", 1, 1.0),
        ("joint_position_from_default", 12, 1.0),
        ("joint_velocity", 12, 0.05),
        ("last_action", 12, 1.0),
        ("base_angular_velocity", 3, 1.0),
        ("base_euler", 3, 1.0),
    ]


def test_rates_actions_gait_and_commands(contract, exports):
    control = contract["control"]
    assert (control["timestep"], control["substeps"], control["dt"]) == (0.001, 10, 0.01)
    assert control["rate"] == 100.0
    assert contract["action"]["added_to"] == "default_pose"
    assert (contract["action"]["scale"], contract["action"]["clip"]) == (0.25, 18.0)
    gait = contract["gait"]
    assert (gait["cycle"], gait["offsets"], gait["double_support"]) == (0.64, [0.0, 0.5], 0.1)
    np.testing.assert_array_equal(gait["gains"][0], [-0.316, 0, 0, 0.632, -0.316, 0] + [0] * 6)
    assert gait["start"] == [joint["default"] for joint in contract["joints"]]
    command = contract["command"]
    assert command["ranges"]["forward"] == [-0.3, 0.6]
    assert (command["heading_gain"], command["yaw_limit"]) == (0.5, 1.0)
    four_legs = json.loads((exports("quadruped") / "contract.json").read_text())
    assert four_legs["action"]["added_to"] == "reference"
    assert four_legs["gait"]["offsets"] == [0.0, 0.5, 0.5, 0.0]


def test_provenance_says_which_policy_it_is(contract, runs):
    made, policy = contract["provenance"], load_policy(runs("g1"))
    assert made["checkpoint"] == 2
    assert made["policy_sha256"] == hash_weights(policy.module.state_dict())
    assert made["config"] == json.loads((runs("g1") / "config.json").read_text())
    assert made["trained"]["prism"] == made["exported"]["prism"]
    with torch.no_grad():
        next(policy.module.parameters()).view(-1)[0] += 1e-6
    assert made["policy_sha256"] != hash_weights(policy.module.state_dict())


def test_contract_and_files_are_bound_to_each_other(contract, exports):
    binding = contract["binding"]
    for key, name in (("policy_sha256", "policy.onnx"), ("model_sha256", "robot.xml")):
        assert binding[key] == hashlib.sha256((exports("g1") / name).read_bytes()).hexdigest()
    given = binding.pop("sha256")
    text = json.dumps(contract, sort_keys=True, separators=(",", ":"))
    assert given == hashlib.sha256(text.encode()).hexdigest()


def test_the_onnx_file_carries_the_contract(contract, exports):
    model = onnx.load(exports("g1") / "policy.onnx")
    embedded = {entry.key: entry.value for entry in model.metadata_props}
    del contract["binding"]  # which holds the hash of this very file
    assert json.loads(embedded["contract"]) == contract
    assert [entry.name for entry in model.graph.input] == ["observation"]
    assert [entry.name for entry in model.graph.output] == ["action"]


def test_command_exports_an_older_checkpoint_and_reports_latency(runs, tmp_path, capsys):
    out = tmp_path / "robot"
    main(["export", str(runs("quadruped")), "--out", str(out), "--checkpoint", "1"])
    printed = capsys.readouterr().out
    assert "median" in printed
    assert "99th percentile" in printed
    assert json.loads((out / "contract.json").read_text())["provenance"]["checkpoint"] == 1
    latency = measure_latency(out, calls=50)
    assert 0 < latency.median <= latency.percentile99


def test_an_export_is_replaced_but_nothing_else(runs, exports, tmp_path):
    target = tmp_path / "export"
    shutil.copytree(exports("quadruped"), target)
    (target / "old").touch()
    export_run(runs("quadruped"), target)
    assert not (target / "old").exists()
    (target / "contract.json").unlink()
    with pytest.raises(ValueError, match="not an export"):
        export_run(runs("quadruped"), target)
    assert (target / "policy.onnx").exists()


def test_a_missing_checkpoint_is_refused_and_leaves_nothing(runs, tmp_path):
    with pytest.raises(RunError, match="no checkpoint 77"):
        export_run(runs("quadruped"), tmp_path / "export", 77)
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_not_there(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["export", str(tmp_path / "nothing")])
    assert caught.value.code == 2
    assert "No run found at" in capsys.readouterr().err
