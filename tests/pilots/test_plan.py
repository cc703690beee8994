"""Plans: sealed before the first trial, and never changed."""

import json
import shutil

import pytest

from prism_motor._checks import InputError, PrismError
from prism_motor.pilots import PilotConfig, PilotError, make_plan, read_plan, run_pilot
from prism_motor.pilots.plan import open_sealed
from prism_motor.runs.layout import SEAL
from tests.pilots.conftest import ARM, CRITERION, NAMES, PLUGINS, SIM, save_policy


def test_a_plan_holds_what_was_decided(plan):
    made = read_plan(folder := plan(trials=4, seed=3))
    assert made.config == PilotConfig(
        CRITERION, trials=4, limit=1.0, fps=30, home_seconds=0.1, seed=3
    )
    assert made.robot.settings["type"] == "point_sim"
    assert made.robot.state == made.robot.actions == ("x.pos", "y.pos")
    assert made.provenance["packages"]["lerobot"]
    assert "command" not in made.provenance
    assert len(made.order) == 8
    assert len({pose.seed for pose in made.poses}) == 4
    sealed = open_sealed(folder)
    assert {sealed.arm(letter).name for letter in made.arms} == set(NAMES)
    assert sealed.arm(sealed.reference).name == NAMES[0]
    assert all(len(sealed.arm(letter).policies[0].sha256) == 64 for letter in made.arms)


def test_letters_are_drawn_and_the_seed_does_not_tell(plan):
    firsts = {open_sealed(plan(folder=f"p{i}")).arm("A").name for i in range(12)}
    assert firsts == set(NAMES)  # by chance the same once in 2000


@pytest.mark.parametrize("name", ["plan.json", "sealed.json"])
def test_a_changed_plan_is_refused(plan, name):
    folder = plan()
    file = folder / name
    file.write_text(file.read_text().replace("30", "31") + " ")
    for use in (read_plan, run_pilot):
        with pytest.raises(PilotError, match=rf"{name} in .* changed after the plan was sealed"):
            use(folder)


def test_an_exchanged_plan_is_noticed_by_the_trials(plan):
    folder, other = plan(), plan(folder="other", limit=0.5)
    run_pilot(folder)
    for name in ("plan.json", "sealed.json", SEAL):
        shutil.copy(other / name, folder / name)
    with pytest.raises(PilotError, match="belongs to another plan"):
        run_pilot(folder)


def test_a_plan_is_not_replaced(plan, tmp_path):
    plan()
    with pytest.raises(PilotError, match="Start a new pilot folder"):
        plan(trials=6)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(PilotError, match="no pilot's folder"):
        plan(folder="full")
    with pytest.raises(PilotError, match="prism pilot plan"):
        read_plan(tmp_path / "nowhere")


def test_power_is_in_the_plan(plan):
    from prism_motor.statistics import boschloo, power_paired, power_unpaired

    made = read_plan(plan(trials=10))
    assert [one.power for one in made.power] == [
        power_paired(10, pair) for pair in ((0.3, 0.9), (0.5, 0.9), (0.3, 0.7))
    ]
    other = read_plan(plan(folder="other", trials=10, test="boschloo", rates=(0.3, 0.9)))
    assert other.power[0].power == pytest.approx(power_unpaired(boschloo, 10, (0.3, 0.9)))


@pytest.mark.parametrize(
    ("arms", "settings", "message"),
    [
        (["quillon"], {}, "NAME=FOLDER"),
        (["{one}"], {}, "2 to 26 arms, got 1"),
        (["{one}", "{one}", "{two}"], {}, "same number of policies"),
        (["{one}", "b=nowhere"], {}, "is no policy"),
        (["{one}", "../b=x"], {}, "cannot be the name of an arm"),
        (["{one}", "{one}", "{two}", "{two}"], {"trials": 5}, "multiple of 2"),
        (None, {"reference": "quilon"}, "Did you mean 'quillon'"),
        (None, {"criterion": " "}, "--criterion is empty"),
        (None, {"trials": 1}, "--trials must be from 2"),
        (None, {"limit": 0.0}, "--limit must be"),
        (None, {"rates": (0.3, 0.9, 0.5)}, "pairs of true rates"),
        (None, {"rates": (0.3, 1.9)}, "from 0 to 1"),
        (None, {"home": (1.0,)}, "--home needs 2 numbers"),
        (None, {"test": "t-test"}, "--test must be one of"),
        (None, {"device": "cuda:99"}, "cannot be used on this machine"),
    ],
)
def test_bad_settings_are_one_message_and_no_folder(
    plan, policies, tmp_path, arms, settings, message
):
    named = arms and [word.format(one=policies[0], two=policies[1]) for word in arms]
    with pytest.raises(PrismError, match=message):
        plan(arms=named, **settings)
    assert not (tmp_path / "pilot").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "Give a robot: --robot.type=NAME, one of .*point_sim"),
        (("--robot.type=point_simm",), "Did you mean 'point_sim'"),
        ((*SIM, "--robot.wheels=4"), "unrecognized arguments: --wheels=4"),
        ((*SIM, "--robot.size=large"), "large"),
        (("--robot.type=so101_follower",), "port"),
    ],
)
def test_bad_flags_of_a_robot_are_one_message(policies, tmp_path, flags, message):
    with pytest.raises(PrismError, match=message):
        make_plan(tmp_path / "pilot", PilotConfig(CRITERION), policies, flags, PLUGINS)


def test_policies_of_another_robot_are_refused(plan, policies, tmp_path):
    """Before anything is connected: one message for each."""

    def refused(message, *robot, **changes):
        wrong = f"wrong={save_policy(tmp_path / 'wrong', **changes)}"
        with pytest.raises(InputError, match=message):
            plan(*robot, arms=[policies[0], wrong])
        assert not (tmp_path / "pilot").exists()

    refused("3 values of state, but the robot has 2: x.pos, y.pos", state=3)
    refused("looks through the camera side, but the robot has top", camera="side")
    refused("images of 16 x 16 .* the robot's have 32 x 32", size=16)
    # A robot in -100 to 100 and a policy in degrees, and the other way round.
    refused("was trained in degrees .*use_degrees=true", low=-120.0, high=130.0)
    refused("reach exactly 100.*use_degrees=false", *SIM, "--robot.use_degrees=true")


def test_demonstrations_of_another_rate_or_robot_are_refused(plan, policies, tmp_path):
    demos = tmp_path / "demos"
    (demos / "meta").mkdir(parents=True)
    columns = {
        "observation.state": {"shape": [2], "names": ["x.pos", "y.pos"]},
        "action": {"shape": [2], "names": ["x.pos", "y.pos"]},
        "observation.images.top": {"shape": [32, 32, 3]},
    }
    info = {"fps": 20, "features": columns}
    policy = policies[1].partition("=")[2]
    training = {"dataset": {"root": str(demos), "repo_id": "local/demos"}}
    (tmp_path / policy / "train_config.json").write_text(json.dumps(training))

    (demos / "meta" / "info.json").write_text(json.dumps(info))
    with pytest.raises(InputError, match=r"at 20 frames per second.* runs at 30.*--fps 20"):
        plan(fps=30)
    assert read_plan(plan(fps=None)).fps == 20  # what the demonstrations say

    columns["action"]["names"] = ["y.pos", "x.pos"]
    (demos / "meta" / "info.json").write_text(json.dumps(info))
    with pytest.raises(InputError, match=r"action = y.pos, x.pos, but the robot has x.pos, y.pos"):
        plan(folder="other", fps=20)

    columns["action"]["names"] = None
    columns["observation.images.top"]["shape"] = [48, 64, 3]
    (demos / "meta" / "info.json").write_text(json.dumps(info))
    with pytest.raises(InputError, match="images of 64 x 48"):
        plan(folder="other", fps=20)


def test_a_diverged_policy_is_noticed_when_it_is_planned(plan, policies, tmp_path):
    from safetensors.torch import load_file, save_file

    file = tmp_path / "policies" / NAMES[1] / "model.safetensors"
    save_file({key: value * float("nan") for key, value in load_file(file).items()}, file)
    with pytest.raises(InputError, match=r"brackish .* cannot act: .*nan"):
        plan()


def test_pictures_of_start_poses_are_sealed(plan, tmp_path):
    import numpy as np
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    with pytest.raises(InputError, match=r"no picture of start pose 1: expected 1-top.png"):
        plan(*ARM, poses=folder)
    for pose in range(1, 5):
        Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(folder / f"{pose}-top.png")
    made = read_plan(plan(*ARM, poses=folder))
    assert [list(pose.pictures) for pose in made.poses] == [["top"]] * 4
    assert made.config.poses == folder
