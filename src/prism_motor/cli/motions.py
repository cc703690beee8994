"""``prism motions``: list, check, import, make and show motion clips of the 29-joint G1."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from prism_motor._checks import InputError, PrismError, check_choice
from prism_motor._console import Progress, count, text_table
from prism_motor._ranges import Seed
from prism_motor.cli.flags import call
from prism_motor.tracking.motions.importing import ImportConfig
from prism_motor.tracking.motions.pictures import PictureConfig

if TYPE_CHECKING:
    import numpy as np

    from prism_motor.tracking.motions.checks import Findings
    from prism_motor.tracking.motions.clip import Clip

_USAGE = """usage: prism motions list [MOTIONS]          show clips: length, soles, limits, licence
       prism motions check FILES [OPTIONS]   say what is wrong with clips or files to import
       prism motions import FILES [OPTIONS]  make clips from CSV and NPZ files in other layouts
       prism motions make [NAMES] [OPTIONS]  make our own motions
       prism motions show MOTION [OPTIONS]   draw a clip: a video or an image

A motion is a file, a folder of them, or the name of one that comes with prism."""

Flags = tyro.conf.arg(name="")


def motions(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """List, check, import, make or show motions; see ``prism motions --help``.

    Args:
        arguments: Arguments after ``prism motions``.
        plugins: User modules, already loaded.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        print(_USAGE)
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    name = check_choice("command of prism motions", words.pop(0), SUBCOMMANDS)
    call(SUBCOMMANDS[name], words, prog=f"prism motions {name}")


def list_(motions: Positional[tuple[str, ...]] = ()) -> None:
    """Show clips with their length, lowest sole, limits and licence.

    Args:
        motions: Files, folders, or names of clips that come with prism; default: all of these.
    """
    from prism_motor.tracking.motions.checks import check_clip
    from prism_motor.tracking.motions.library import find_clips

    print(_table((clip, check_clip(clip)) for clip in find_clips(motions)))


def check(motions: Positional[tuple[str, ...]], config: Annotated[ImportConfig, Flags]) -> None:
    """Say what is wrong with clips or files to import; exit code 2 if one cannot be imported.

    Args:
        motions: Files, folders, or names of clips that come with prism.
        config: How other files are read.
    """
    from prism_motor.tracking.motions.checks import check_clip
    from prism_motor.tracking.motions.library import find_clip, shipped_clips

    known = shipped_clips()
    refused: list[str] = []
    found = []
    for name in _files(motions, known):
        clip = _try(name, config, refused) if name not in known else find_clip(name)
        if clip is not None:
            found.append((clip, check_clip(clip, contacts=True)))
    _say(found)
    _end(refused, len(found))


def import_(
    motions: Positional[tuple[Path, ...]],
    config: Annotated[ImportConfig, Flags],
    out: Path = Path("motions"),
) -> None:
    """Make clips from CSV and NPZ files in other layouts; says what it repairs and what it refuses.

    Args:
        motions: Files, or folders of them.
        config: How they are read.
        out: Folder for the clips.
    """
    from prism_motor.tracking.motions.checks import check_clip
    from prism_motor.tracking.motions.clip import write_clip

    files = [Path(name) for name in _files([str(given) for given in motions])]
    names = [file.stem for file in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Several files are called {', '.join(twice)}; import them one by one.")
    refused: list[str] = []
    found = []
    for file in files:
        clip = _try(str(file), config, refused)
        if clip is not None:
            write_clip(clip, out)
            found.append((clip, check_clip(clip)))
    _say(found)
    if found:
        print(f"{count(len(found), 'clip')} in {out}. Next: prism motions show {out}/NAME.npz")
    _end(refused, len(found))


def make(
    motions: Positional[tuple[str, ...]] = (),
    out: Path = Path("motions"),
    policy: Path = Path("g1-prism"),
    seed: Seed = 0,
) -> None:
    """Make our own motions: walks of a trained policy, and quasi-static ones.

    Args:
        motions: Which; default: all.
        out: Folder for the clips.
        policy: Who walks: a run folder, or a policy that comes with prism.
        seed: Seed of the walking robot's initial state.
    """
    from prism_motor.tracking.motions.checks import check_clip
    from prism_motor.tracking.motions.clip import write_clip
    from prism_motor.tracking.motions.kinematic import MOTIONS, make_kinematic
    from prism_motor.tracking.motions.walking import WALKS

    wanted = [check_choice("motion", name, [*MOTIONS, *WALKS]) for name in motions]
    found = []
    for name in wanted or [*MOTIONS, *WALKS]:
        clip = make_kinematic(name) if name in MOTIONS else _walk(name, policy, seed)
        write_clip(clip, out)
        found.append((clip, check_clip(clip)))
    _say(found)
    print(f"{count(len(found), 'clip')} in {out}. Next: prism motions show {out}/NAME.npz")


def show(
    motion: Positional[str],
    config: Annotated[PictureConfig, Flags],
    out: Path | None = None,
) -> None:
    """Draw a clip: a video (.mp4, .gif), or an image (.png) of moments side by side.

    Args:
        motion: A file, or the name of a clip that comes with prism.
        config: What it looks like.
        out: The file; default: outputs/motions/NAME.mp4.
    """
    from prism_motor.tracking.motions.library import find_clip
    from prism_motor.tracking.motions.pictures import (
        VIDEO_RATE,
        check_picture,
        draw_clip,
        write_picture,
    )

    clip = find_clip(motion)
    file = out or Path("outputs") / "motions" / f"{clip.name}.mp4"
    check_picture(file)
    if file.suffix.lower() == ".png":
        write_picture(file, clip, config)
    else:
        from prism_motor.sim.video_files import write_video

        pictures, total = draw_clip(clip, config)
        write_video(file, _with_progress(pictures, total), VIDEO_RATE)
    print(f"{file}: {clip.name}, {clip.seconds:.1f} s")


SUBCOMMANDS = {"list": list_, "check": check, "import": import_, "make": make, "show": show}


def _files(given: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Return files, those of folders, and known names."""
    if not given:
        raise InputError("Give files (.csv, .npz), or folders of them.")
    found: list[str] = []
    for name in given:
        place = Path(name)
        inside = [*place.glob("*.csv"), *place.glob("*.npz")] if place.is_dir() else []
        if place.is_dir() and not inside:
            raise InputError(f"{place} has no .csv and no .npz files.")
        if not inside and not place.suffix and name not in known:
            shipped = f", nor a motion that comes with prism: {', '.join(known)}" if known else ""
            raise InputError(f"{name} is neither a file (.csv, .npz) nor a folder{shipped}.")
        found += sorted(map(str, inside)) or [name]
    return found


def _try(file: str, config: ImportConfig, refused: list[str]) -> Clip | None:
    """Import a file; one that is refused must not keep others out."""
    from prism_motor.tracking.motions.importing import import_motion

    try:
        return import_motion(Path(file), config)
    except PrismError as error:
        refused.append(str(error))
        return None


def _end(refused: list[str], accepted: int) -> None:
    if refused:
        total = count(accepted + len(refused), "file")
        start = f"{len(refused)} of {total} refused:\n" if accepted + len(refused) > 1 else ""
        raise InputError(start + "\n".join(refused))


def _walk(name: str, policy: Path, seed: int) -> Clip:
    from prism_motor.locomotion.policy import load_policy
    from prism_motor.locomotion.walks import record_walk
    from prism_motor.tracking.motions.walking import SECONDS, START, WALKS, clip_from_walk

    loaded = load_policy(policy)
    states, fps = record_walk(loaded, WALKS[name], seconds=START + SECONDS, seed=seed)
    return clip_from_walk(name, states[round(START * fps) :], fps, policy.name)


def _say(found: Sequence[tuple[Clip, Findings]]) -> None:
    """Print the table, then what was changed in each clip and what is wrong with it."""
    if not found:
        return
    print(_table(found))
    for clip, findings in found:
        for note in (*clip.changes, *findings.problems()):
            print(f"- {clip.name}: {note}")


def _table(found: Iterable[tuple[Clip, Findings]]) -> str:
    rows = [("motion", "seconds", "fps", "frames", "lowest sole", "beyond limits", "licence")]
    for clip, findings in found:
        rows.append(
            (
                clip.name,
                f"{clip.seconds:.1f}",
                f"{clip.fps:g}",
                str(len(clip)),
                f"{100 * findings.lowest:.1f} cm".replace("-0.0", "0.0"),
                count(findings.beyond_limits, "frame") if findings.beyond_limits else "-",
                clip.licence or "not stated",
            )
        )
    return text_table(rows)


def _with_progress(pictures: Iterable[np.ndarray], total: int) -> Iterator[np.ndarray]:
    with Progress("Images", total, unit="image") as progress:
        for picture in pictures:
            yield picture
            progress.step()
