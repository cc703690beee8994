"""``prism video``: film a trained policy without a display."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import Positional

if TYPE_CHECKING:
    import numpy as np

    from prism_motor.locomotion.video import Film


def video(
    run: Positional[Path],
    out: Path | None = None,
    seconds: float = 10.0,
    command: tuple[float, float, float] | Literal["random"] = (0.5, 0.0, 0.0),
    condition: str = "nominal",
    width: int = 640,
    height: int = 480,
    seed: int = 1,
    checkpoint: int | None = None,
    primitives: bool = False,
) -> None:
    """Film a trained policy, with its command and its measured velocity in the picture.

    Args:
        run: The run folder, or the name of a policy that comes with prism.
        out: An .mp4 or .gif file; default: RUN/videos/CHECKPOINT-CONDITION.mp4.
        seconds: Length.
        command: Forward and sideways velocity (m/s) and yaw rate (rad/s), or random.
        condition: One of nominal, low-friction, payload, pushes, training.
        width: Pixels.
        height: Pixels.
        seed: Seed of the initial state and of random commands.
        checkpoint: Which checkpoint; default: the newest.
        primitives: Draw simple shapes even where a package with meshes of the robot is installed.
    """
    from prism_motor.cli._shipped import writable
    from prism_motor.locomotion.policy import load_policy
    from prism_motor.locomotion.video import Film, VideoConfig
    from prism_motor.sim.video_files import check_file, write_video

    chosen = None if command == "random" else command
    config = VideoConfig(seconds, chosen, condition, width, height, seed, primitives)
    policy = load_policy(run, checkpoint)
    file = out or writable(run) / "videos" / f"{policy.step:08d}-{condition}.mp4"
    check_file(file)
    trained = policy.config
    title = f"{trained.arm}, {trained.preset}, seed {trained.seed}, update {policy.step}"
    film = Film(policy, trained.task, config, title)
    write_video(file, _with_progress(film), film.rate)
    fallen = {0: "the robot never fell", 1: "the robot fell once"}
    print(f"{file}: {seconds:g} s, {fallen.get(film.falls, f'the robot fell {film.falls} times')}")


def _with_progress(film: Film) -> Iterator[np.ndarray]:
    from prism_motor._progress import Progress

    with Progress("Pictures", len(film)) as progress:
        for picture in film:
            yield picture
            progress.step()
