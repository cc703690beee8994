"""``prism teleop``: demonstrations by a person, of the SO-101 twin in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from prism_motor._console import count
from prism_motor._ranges import Seed, between
from prism_motor.cli.watch import Seconds, serve

if TYPE_CHECKING:
    from prism_motor.viewer.teleop.show import TeleopShow


def teleop(
    out: Positional[Path],
    task: str = "mouse-click-v0",
    servos: Literal["soft", "stiff"] = "soft",
    placement: Literal["narrow", "wide"] = "narrow",
    episodes: Annotated[int, between(1, 10_000)] = 5,
    image_size: Annotated[int, between(16, 1024)] = 96,
    seed: Seed = 1,
    host: str = "127.0.0.1",
    port: Annotated[int, between(0, 65535)] = 8080,
    seconds: Seconds | None = None,
) -> None:
    """Record your own demonstrations: move the tip of a simulated SO-101 in the browser.

    An episode is on disk once it is kept. The same command continues a dataset.

    Args:
        out: Folder of the LeRobotDataset; one of the same settings is appended to.
        task: mouse-click-v0, press-key-v0 or push-cube-v0.
        servos: How stiff the servos are: soft (as measured on hardware) or stiff.
        placement: Where things are put: narrow (as in the pilot) or wide (only with soft servos).
        episodes: How many episodes the dataset should have.
        image_size: Side of the images, pixels.
        seed: Seed of the placements.
        host: Address to listen on; the default is reachable only from this machine. Whoever can
            reach it also needs the token in the printed address.
        port: Port to listen on; the next free one if it is taken.
        seconds: Stop after this time; default: run until Ctrl-C.
    """
    from prism_motor.manipulation.suites.so101.suite import suite_of
    from prism_motor.manipulation.tasks import find_task

    chosen = find_task(suite_of(servos, placement), task)
    made: list[TeleopShow] = []

    def make_show() -> TeleopShow:
        from prism_motor.viewer.teleop.show import make_show

        made.append(make_show(out, chosen, episodes=episodes, image_size=image_size, seed=seed))
        kept = len(made[0].session.kept)
        if kept:
            print(f"{out} has {kept} of {count(episodes, 'episode')} already.", flush=True)
        return made[0]

    serve(make_show, host, port, seconds)
    session, kept = made[0].session, made[0].session.kept
    if session.recording:
        print(f"The unfinished episode ({count(session.frames, 'frame')}) is dropped.")
    if not kept:
        print("No episode was kept.")
        return
    solved = sum(take.success for take in kept)
    print(
        f"{out}: {len(kept)} episode{'' if len(kept) == 1 else 's'}, {solved} of them solved the "
        f"task. Next: prism train manipulation --preset pilot --suite {chosen.suite} "
        f"--task {chosen.name} --demos {out}"
    )
