import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from prism_motor.cli import main
from prism_motor.export import runner
from tests.export.bound import read_contract, write_contract


@pytest.fixture
def export(exports, tmp_path):
    return shutil.copytree(exports("quadruped"), tmp_path / "export")


def edit(folder, change):
    """Change the contract and bind everything to it again, as if it were exported like that."""
    contract = read_contract(folder)
    change(contract)
    write_contract(folder, contract)


def write_policy(folder, inputs, outputs, value):
    """Replace the policy by one linear layer of equal weights."""
    weights = numpy_helper.from_array(np.full((inputs, outputs), value, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "w"], ["action"])],
        "linear",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", inputs])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", outputs])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "policy.onnx"))
    edit(folder, lambda contract: None)


def python(*words, **options):
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, **options
    )


def test_standalone_copy_runs_without_prism_and_torch(export, tmp_path):
    code = (
        "import runpy, sys\n"
        "sys.argv = ['runner.py', 'export', '--seconds', '1', '--command', '0.3', '0', '0.5']\n"
        "runpy.run_path('export/runner.py', run_name='__main__')\n"
        "print('LOADED', sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    result = python("-c", code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "survived      1.00 s of 1.00 s" in result.stdout
    assert "commanded 0.300" in result.stdout
    loaded = eval(result.stdout.split("LOADED ")[1])
    assert {"numpy", "onnxruntime", "mujoco"} <= set(loaded)
    assert not {"prism_motor", "torch", "rsl_rl", "tensordict"} & set(loaded)


PARTS = [
    file.stem for file in Path(runner.parts.__file__).parent.glob("*.py") if file.stem != "__init__"
]


def test_the_module_imports_nothing_of_the_training_code():
    code = "import sys, prism_motor.export.runner; print([n for n in sys.modules if 'prism' in n])"
    names = eval(python("-c", code).stdout)
    assert set(names) == {
        "prism_motor",
        "prism_motor._alias",
        "prism_motor._checks",
        "prism_motor._lazy",
        "prism_motor._version",
        "prism_motor.export",
        "prism_motor.export.runner",
        "prism_motor.export.runner_parts",
        *(f"prism_motor.export.runner_parts.{name}" for name in PARTS),
    }


def test_command_prints_what_happened(export, capsys):
    main(["sim2sim", str(export), "--seconds", "0.5", "--seed", "3"])
    printed = capsys.readouterr().out
    for words in ("quadruped", "0.50 s of 0.50 s", "linear error", "yaw error", "mean speed"):
        assert words in printed
    main(["sim2sim", str(export), "--seconds", "0.1", "--command", "2", "0", "0"])
    assert capsys.readouterr().err == (
        "note: forward 2.0 is outside the trained range -0.3 to 0.6; it is clamped to 0.6\n"
    )


def test_seeds_draw_commands_and_starts_as_in_training(export):
    contract = runner.load_export(export).contract
    commands = np.concatenate([runner.draw_commands(contract, 24.0, seed) for seed in range(200)])
    assert len(commands) == 200 * 4
    assert -0.3 <= commands[:, 0].min() < -0.28
    assert 0.58 < commands[:, 0].max() <= 0.6
    speed = np.linalg.norm(commands[:, :2], axis=1)
    assert ((speed == 0) | (speed > 0.2)).all()
    assert (speed == 0).mean() == pytest.approx(0.233, abs=0.05)
    one, again, other = (runner.draw_start(contract, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.abs(one[7:] - [0, 0.75, -1.5] * 4).max() <= 0.1


def test_errors_are_measured_against_the_command(export):
    """A policy that stands still is off by the whole command."""
    write_policy(export, 235, 12, 0.0)
    edit(export, lambda contract: contract["action"].update(added_to="default_pose"))
    loaded = runner.load_export(export)
    start = runner.draw_start(loaded.contract, 0)
    episode = runner.simulate(loaded, 4.0, np.array([[0.4, 0.3, 0.0]]), *start)
    assert episode.fall is None
    assert episode.commanded_speed == pytest.approx(0.5)
    assert episode.linear_error == pytest.approx(0.5, abs=0.05)
    assert episode.speed < 0.1


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("height", 0.4, "height"), ("roll", 1e-9, "roll"), ("base_force", 1e-9, "touched the ground")],
)
def test_a_fall_ends_the_episode_and_says_why(export, limit, value, words):
    edit(export, lambda contract: contract["termination"].update({limit: value}))
    loaded = runner.load_export(export)
    qpos, qvel = runner.draw_start(loaded.contract, 0)
    if limit == "base_force":
        qpos[2:7] = 0.05, 0, 1, 0, 0  # on its back, legs up
    episode = runner.simulate(loaded, 2.0, np.zeros((1, 3)), qpos, qvel)
    assert words in episode.fall
    assert len(episode.actions) == 1


@pytest.mark.parametrize("name", ["contract.json", "policy.onnx", "robot.xml"])
def test_missing_files(export, name):
    (export / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"no {name}"):
        runner.load_export(export)


def test_observations_of_a_task_of_ones_own_need_a_source(export, monkeypatch):
    edit(export, lambda c: c["observation"]["blocks"][0].update(source="sonar"))
    read = runner.load_export(export)
    with pytest.raises(runner.RunnerError, match=r"'sonar'.*knows: base.*SOURCES\['sonar'\] ="):
        runner.Controller(read.contract, read.session)
    monkeypatch.setitem(runner.SOURCES, "sonar", lambda controller, reading: np.zeros(2))
    controller = runner.Controller(read.contract, read.session)
    reading = runner.read(*runner.draw_start(read.contract, 0))
    assert controller.step(reading, np.zeros(3)).shape == (12,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(schema=1), r"schema 1.*reads schema 2"),
        (lambda c: c.pop("schema"), "not a contract"),
        (lambda c: c["gait"].pop("cycle"), r"lacks: gait\.cycle"),
        (lambda c: c["gait"].update(cycles=1), r"unknown field: gait\.cycles"),
        (
            lambda c: c["gait"].update(strides=[[[0.0] * 12] * 2] * 4),
            r"gait\.strides\[0\] must be 3 entries, one per part of the command; it is .*2 entries",
        ),
        (lambda c: c["joints"][3].pop("damping"), r"lacks: joints\[3\]\.damping"),
        (
            lambda c: c["observation"].update(frames=15),
            r"observation\.size must be .*705; it is 235",
        ),
        (lambda c: c["observation"].update(frames=15, size=705), r"takes .*235.*705"),
        (lambda c: c["joints"].pop(), r"gait\.start must be 11 entries.*joint; it is 12 entries"),
        (lambda c: c["joints"].reverse(), "drives"),
        (lambda c: c["joints"][0].update(stiffness=70.0), "in stiffness"),
        (lambda c: c["joints"][0].update(range=[-1, 1]), "in range"),
        (lambda c: c["joints"][0].update(name="front_left_knee"), "a name that no other joint has"),
        (
            lambda c: c["joints"][2].update(default=0.0),
            r"\[2\]\.default .*in its range, -2\.7 to -0\.5",
        ),
        (
            lambda c: c["control"].update(dt=0.04),
            r"control\.dt must be timestep \* substeps, 0\.02",
        ),
        (lambda c: c["safety"].update(deadline=0.001), "deadline must be at least"),
        (lambda c: c["action"].update(scale=True), r"action\.scale must be a number .* it is True"),
        (lambda c: c["action"].update(scale=-0.25), r"action\.scale .* above 0 .* it is -0\.25"),
        (lambda c: c["termination"].update(base_force_sensor="nose"), "no sensor 'nose'.*trunk"),
        (lambda c: c["command"]["ranges"].update(forward=[1, 0]), "in this order; it is"),
        (lambda c: c["provenance"].pop("policy_sha256"), "provenance must be"),
    ],
)
def test_contracts_that_do_not_fit(export, change, words):
    edit(export, change)
    with pytest.raises(runner.RunnerError, match=words):
        runner.load_export(export)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c["joints"][4].update(default=0.76), r"joints\[4\]\.default"),
        (lambda c: c["action"].update(scale=0.2), r"action\.scale"),
        (lambda c: c["gait"]["gains"][1].__setitem__(4, -0.1), r"gait\.gains\[1\]\[4\]"),
        (lambda c: c["provenance"].update(checkpoint=7), r"provenance\.checkpoint"),
        (lambda c: c["provenance"].pop("config"), r"provenance\.config\.\w+"),
        (lambda c: c["gait"].update(meaning="other"), r"gait\.meaning"),
    ],
)
def test_a_contract_cannot_be_edited(export, change, field):
    """Allowed values, but not those of the export; even with a binding of its own."""
    file, contract = export / "contract.json", read_contract(export)
    change(contract)
    bound = runner.bind(
        contract, (export / "policy.onnx").read_bytes(), (export / "robot.xml").read_bytes()
    )
    for altered in (contract, bound):
        file.write_text(json.dumps(altered))
        with pytest.raises(runner.RunnerError, match=f"was changed: {field} is not"):
            runner.load_export(export)


def test_damaged_files(export):
    xml = (export / "robot.xml").read_text()
    (export / "robot.xml").write_text(xml + " ")
    with pytest.raises(runner.RunnerError, match=r"robot\.xml is not the file that was exported"):
        runner.load_export(export)
    (export / "robot.xml").write_text("<mujoco>")
    edit(export, lambda contract: None)
    with pytest.raises(runner.RunnerError, match=r"MuJoCo cannot read .*robot\.xml"):
        runner.load_export(export)
    (export / "policy.onnx").write_bytes(b"not a network")
    with pytest.raises(runner.RunnerError, match=r"policy\.onnx is not the file"):
        runner.load_export(export)
    with pytest.raises(runner.RunnerError, match=r"onnxruntime cannot read .*policy\.onnx"):
        runner.open_policy(export / "policy.onnx")
    (export / "contract.json").write_text("{")
    with pytest.raises(runner.RunnerError, match="not a contract"):
        runner.load_export(export)


def test_a_policy_of_another_size(export):
    write_policy(export, 705, 12, 0.0)
    with pytest.raises(runner.RunnerError, match=r"does not fit.*705.*235"):
        runner.load_export(export)


def test_a_policy_that_returns_nan_stops_the_robot(export, capsys):
    write_policy(export, 235, 12, float("nan"))
    with pytest.raises(SystemExit) as caught:
        main(["sim2sim", str(export)])
    assert caught.value.code == 3
    printed = capsys.readouterr()
    assert "stopped after 0.00 s of 24.00 s" in printed.out
    assert printed.err.startswith(
        "prism: stopped at control step 0 (0.00 s): the policy's output of front_left_hip_roll is "
        "nan; it must be a number"
    )
    result = python(runner.__file__, str(export))
    assert result.returncode == 3
    assert "runner: stopped at control step 0" in result.stderr
    assert "Traceback" not in result.stderr


def test_standalone_errors_are_one_line(tmp_path):
    result = python(runner.__file__, str(tmp_path))
    assert result.returncode == 2
    assert "no contract.json" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_seconds_must_be_positive(export, seconds):
    with pytest.raises(runner.RunnerError, match="positive"):
        runner.run(export, float(seconds))
