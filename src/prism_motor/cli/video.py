"""``prism video``: record what a trained policy does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._checks import InputError
from prism_motor._console import Progress
from prism_motor._devices import Device
from prism_motor._ranges import Checked, Step
from prism_motor.cli.flags import parse_together
from prism_motor.domains import DOMAINS, open_run

if TYPE_CHECKING:
    import numpy as np

    from prism_motor.protocols import Film

_USAGE = """usage: prism video RUN [--out FILE] [--checkpoint NUMBER] [--device DEVICE] [OPTIONS]

Records videos of the policy of a run folder, or of one shipped with prism, in RUN/videos, without
replacing earlier ones.
prism video RUN --help shows the options for that run: what can be shown depends on the domain
({domains}), e.g. --condition low-friction."""


@dataclass(frozen=True)
class FilmOptions(Checked, section="--"):
    """Which policy to show, and where the video goes."""

    out: Path | None = None
    """An .mp4 or .gif file, or for several videos a folder; default: RUN/videos."""
    checkpoint: Step | None = None
    """Which checkpoint; default: the newest."""
    device: Device | None = None
    """Torch device of the policy; default: that of its training, or the CPU where it is missing."""


def video(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Record videos of a trained policy; see ``prism video --help``.

    Args:
        arguments: What was typed after ``prism video``.
        plugins: User modules, already loaded.
    """
    # Without a run, print the usage: the flags depend on the run's domain.
    words = list(arguments)
    if not words or words[0].startswith("-"):
        filmed = [name for name in DOMAINS if DOMAINS[name].film is not None]
        print(_USAGE.format(domains=", ".join(filmed)))
        raise SystemExit(0 if words and words[0] in ("-h", "--help") else 2)
    given = words.pop(0)
    _, domain, config = open_run(given)
    if domain.film is None:
        raise InputError(f"{given} is a {domain.name} run; of these there are no videos.")
    defaults = domain.film()
    options, changes = parse_together(
        FilmOptions,
        defaults,
        words,
        prog=f"prism video {given}",
        description=f"Record what {config.arm} does on {domain.task_name(config)}.",
    )
    changes = {key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()}
    settings = replace(defaults, **changes)
    if options.out is not None and options.out.suffix:
        from prism_motor.sim.video_files import check_file

        check_file(options.out)
    _record(domain.films(given, settings, options.checkpoint, options.device), given, options.out)


def _record(films: Sequence[Film], run: str, out: Path | None) -> None:
    """Make all videos, one after the other."""
    from prism_motor.runs.layout import VIDEOS
    from prism_motor.runs.shipped import writable
    from prism_motor.sim.video_files import check_file, unused_file, write_video

    if out is not None and out.suffix:
        if len(films) > 1:
            raise InputError(
                f"--out: {out} holds one video, but there are {len(films)} to make; give a folder, "
                "or ask for one of them."
            )
        folder, files = out.parent, [out]
    else:
        folder = out or writable(run) / VIDEOS
        files = [None] * len(films)
    for film, named in zip(films, files, strict=True):
        # Chosen one by one, so that earlier videos stay, those of this call too.
        file = named or unused_file(folder, film.name)
        check_file(file)
        write_video(file, _with_progress(film), film.rate)
        print(f"{file}: {film.summary()}")


def _with_progress(film: Film) -> Iterator[np.ndarray]:
    with Progress("Images", len(film), unit="image") as progress:
        for image in film:
            yield image
            progress.step()
