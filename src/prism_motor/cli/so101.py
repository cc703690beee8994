"""``prism so101``: an emulated SO-101 for LeRobot's own commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from prism_motor._checks import InputError, check_choice, check_name
from prism_motor.cli.flags import call
from prism_motor.integrations.feetech.twin_servos import TwinServosConfig

if TYPE_CHECKING:
    from prism_motor.integrations.feetech.arms import EmulatedArms
    from prism_motor.integrations.feetech.calibration import Arm


_USAGE = """usage: prism so101 bus [OPTIONS]   emulate the motor bus of an SO-101 for LeRobot"""


def so101(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Offer what stands in for an SO-101; see ``prism so101 --help``.

    Args:
        arguments: Arguments after ``prism so101``.
        plugins: User modules, already loaded.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        print(_USAGE)
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    name = check_choice("command of prism so101", words.pop(0), SUBCOMMANDS)
    call(SUBCOMMANDS[name], words, prog=f"prism so101 {name}")


def bus(
    config: Annotated[TwinServosConfig, arg(name="")],
    leader: bool = False,
    plain: bool = False,
    folder: Path | None = None,
    id: str = "emulated",
    calibration: bool = True,
    fault: tuple[str, ...] = (),
) -> None:
    """Emulate the motor bus of an SO-101, to which LeRobot's so101_follower connects.

    Runs until Ctrl-C. While it runs, type: fault KIND:MOTOR:COUNT, heal, middle, sweep.

    Args:
        config: The twin that the arm moves.
        leader: Also offer a leader arm, for so101_leader; with a twin, a script moves it.
        plain: No twin: servos that carry nothing and that a hand can move, for calibration.
        folder: For ports and pictures; default: prism-so101 in the folder of temporary files.
        id: What --robot.id and --teleop.id will be, for the calibration files.
        calibration: Write LeRobot's calibration files, unless there are others.
        fault: What is wrong from the start: KIND, KIND:MOTOR or KIND:MOTOR:COUNT.
    """
    from prism_motor.integrations.feetech.arms import emulated_arms
    from prism_motor.integrations.feetech.faults import Fault
    from prism_motor.integrations.feetech.frames import default_folder
    from prism_motor.sim.so101.scenes.scene import CAMERAS
    from prism_motor.sim.so101.units import JOINTS

    check_name("id", id)
    faults = [Fault.parse(text, JOINTS) for text in fault]
    place = folder or default_folder()
    with emulated_arms(place, None if plain else config, leader=leader) as arms:
        for one in faults:
            arms.follower.inject(one)
        print(f"follower: --robot.type=so101_follower --robot.port={arms.follower.port}")
        _offer_calibration("follower", id, calibration)
        if arms.leader is not None:
            print(f"leader:   --teleop.type=so101_leader --teleop.port={arms.leader.port}")
            _offer_calibration("leader", id, calibration)
        if arms.twin is not None and config.image_size:
            size = config.image_size
            shape = f"type: so101_sim, folder: {place}, width: {size}, height: {size}, fps: 30"
            cameras = ", ".join(f"{name}: {{{shape}, name: {name}}}" for name in CAMERAS)
            print(f'cameras:  --robot.cameras="{{{cameras}}}"')
        print("Ctrl-C ends it.", flush=True)
        _obey(arms)


def _offer_calibration(arm: Arm, id: str, write: bool) -> None:
    from prism_motor.integrations.feetech.calibration import calibration_file, write_calibration

    path = calibration_file(arm, id)
    flag = f"--{'robot' if arm == 'follower' else 'teleop'}.id={id}"
    if not write:
        print(f"          {flag}; without a calibration file, LeRobot asks you to calibrate")
    elif write_calibration(path):
        print(f"          {flag} (calibration: {path})")
    else:
        print(f"          {flag}: another calibration is in {path}; LeRobot will ask about it")


def _obey(arms: EmulatedArms) -> None:
    """Do what is typed; without a keyboard, wait for Ctrl-C."""
    import threading

    for line in sys.stdin:
        words = line.split()
        if words:
            try:
                _do(arms, words[0], words[1:])
            except InputError as error:
                print(error, flush=True)
    threading.Event().wait()


def _do(arms: EmulatedArms, word: str, rest: Sequence[str]) -> None:
    from prism_motor.integrations.feetech.faults import FAULTS, Fault
    from prism_motor.integrations.feetech.hand import MOVES
    from prism_motor.sim.so101.units import JOINTS

    check_choice("word", word, ("fault", "heal", *MOVES))
    if word in MOVES:
        if arms.twin is not None:
            raise InputError("Nobody can move the twin by hand; start the bus with --plain.")
        arms.hand.move(word)
    elif word == "heal":
        for one in arms.buses:
            one.faults.clear()
    elif len(rest) == 1:
        arms.follower.inject(Fault.parse(rest[0], JOINTS))
    else:
        raise InputError(f"Type fault KIND:MOTOR:COUNT, with one of {', '.join(FAULTS)}.")


SUBCOMMANDS = {"bus": bus}
