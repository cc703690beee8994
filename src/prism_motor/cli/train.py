"""``prism train``: train a policy of any domain in a run folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from prism_motor._checks import InputError, check_choice, check_name
from prism_motor._console import available_cores, count, duration
from prism_motor._devices import Device
from prism_motor._ranges import Checked, Count, Threads
from prism_motor.cli.flags import parse, parse_together, peek, rename, take
from prism_motor.domains import DOMAINS, Domain, domain_of
from prism_motor.runs.layout import CONFIG
from prism_motor.train.trackers import TrackerName, check_trackers

HIDDEN = ("kind", "plugins")
"""Settings of a run that are not flags."""

_USAGE = """usage: prism train DOMAIN [--preset NAME] [--arm NAME] [--seed N] [OPTIONS]
       prism train --config FILE [OPTIONS]   repeat a run from its config.json, bit for bit
       prism train --resume RUN [OPTIONS]    resume a run from its newest checkpoint

Domains: {domains}
prism train DOMAIN --help shows all settings of a run; those of the given preset are the
defaults."""


@dataclass(frozen=True)
class TrainOptions(Checked, section="--"):
    """How to train a run."""

    out: Path | None = None
    """Run folder; default: runs/NAME, named by preset, arm and seed."""
    config: Path | None = None
    """Repeat the run of this config.json; other options change its settings."""
    label: str | None = None
    """Name of the arm in tables; default: the arm's."""
    processes: Threads = 1
    """Data-parallel processes on this machine (or use torchrun); they share each update."""
    video_every: Count | None = None
    """Record a video every this many updates, as RUN/videos/UPDATE.mp4."""
    tracker: tuple[TrackerName, ...] | None = None
    """Where metrics, settings, videos and later evaluations are shown; default: tensorboard."""


@dataclass(frozen=True)
class ResumeOptions(Checked, section="--"):
    """How to resume a run, which keeps its settings."""

    resume: Path
    """The run folder."""
    updates: Count | None = None
    """New total number of updates, to train longer than planned."""
    processes: Threads = 1
    """Number of data-parallel processes; must be the same as before."""
    device: Device | None = None
    """Another device of the same kind, e.g. cuda:1; default: that of the run."""
    video_every: Count | None = None
    """Record a video every this many updates, as RUN/videos/UPDATE.mp4."""
    tracker: tuple[TrackerName, ...] | None = None
    """Where metrics, videos and later evaluations are shown; default: where they were before."""


def train(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Train a policy; see ``prism train --help``.

    Args:
        arguments: Arguments after ``prism train``.
        plugins: User modules, which become part of the run's settings.
    """
    words = list(arguments)
    named = words.pop(0) if words and not words[0].startswith("-") else None
    if peek(words, "--resume") is not None:
        _resume(words, DOMAINS[named] if named else None)
        return
    if peek(words, "--config") is None and named is None:
        print(_USAGE.format(domains=", ".join(DOMAINS)))
        sys.exit(0 if {"-h", "--help"} & set(words) else 2)
    domain, options, settings = read_settings(arguments, plugins)
    name = check_name("run", domain.run_name(settings), also="+=", longest=200)
    out = options.out or Path("runs") / name
    _launch(domain, settings, out, options)


def read_settings(
    arguments: Sequence[str], plugins: Sequence[str] = ()
) -> tuple[Domain, TrainOptions, Any]:
    """Return the settings of a new run by the arguments of ``prism train``."""
    words = list(arguments)
    named = words.pop(0) if words and not words[0].startswith("-") else None
    file = peek(words, "--config")
    if file is not None:
        return _from_file(Path(file), words, named, plugins)
    if named is None:
        raise InputError(f"Give a domain, {', '.join(DOMAINS)}, or --config FILE.")
    return _from_preset(DOMAINS[named], words, plugins)


def _from_preset(
    domain: Domain, words: list[str], plugins: Sequence[str]
) -> tuple[Domain, TrainOptions, Any]:
    """Return the settings of a preset and an arm, changed by flags."""
    from prism_motor.train.distributed import current_rank

    words = _present_names(domain, words)
    chosen = {}
    for flag, values in domain.preset_flags.items():
        for value in take(words, flag):
            chosen[flag] = check_choice(flag, value, values)
    named = take(words, "--preset")
    preset = domain.preset_name(named[-1] if named else None, chosen)
    arm = domain.arm_name(peek(words, "--arm", "prism") or "")
    leading = _take_leading(domain, words)
    processes = _number(peek(words, "--processes"))
    cores = max(1, available_cores() // max(processes, current_rank().world_size))
    settings = domain.flags(preset, arm, leading) if leading else domain.flags(preset, arm)
    defaults = replace(settings, arm=arm, threads=cores)
    options, changes = parse_together(
        TrainOptions,
        defaults,
        words,
        prog=f"prism train {domain.name}",
        description=f"{domain.title}: train a policy. Presets: {', '.join(domain.presets)}. Arms: "
        f"{', '.join(domain.arms)}.{_preset_help(domain)}",
        hidden=HIDDEN,
    )
    changes.pop("arm", None)  # given by a former name
    seed = changes.pop("seed", defaults.seed)
    changes = {"threads": cores, **leading, **changes}
    settings = domain.make_config(preset, arm, seed=seed, name=options.label, overrides=changes)
    return domain, options, replace(settings, plugins=tuple(plugins))


def _take_leading(domain: Domain, words: list[str]) -> dict[str, str]:
    """Remove the flags on which the defaults of others depend; return their settings."""
    given = {key: take(words, _leading_flag(key)) for key in domain.leading}
    return {key: values[-1] for key, values in given.items() if values}


def _leading_flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _preset_help(domain: Domain) -> str:
    """Describe the flags that choose among presets, and those that come before others."""
    chosen = [
        f" {flag} {'|'.join(values)} chooses among presets."
        for flag, values in domain.preset_flags.items()
    ]
    leading = [_leading_flag(key) for key in domain.leading]
    told = f" The defaults depend on {' and '.join(leading)}." if leading else ""
    return "".join([*chosen, told])


def _from_file(
    file: Path, words: list[str], named: str | None, plugins: Sequence[str]
) -> tuple[Domain, TrainOptions, Any]:
    """Return the settings of a config.json, changed by flags."""
    from prism_motor.runs.configs import apply_overrides

    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise InputError(f"{file} should hold a table of settings, not {type(data).__name__}.")
    domain = domain_of(data)
    if named is not None and DOMAINS[named] is not domain:
        raise InputError(f"{file} is for {domain.name}, not for {named}.")
    defaults = domain.read_config(data, str(file))
    words = _present_names(domain, words)
    for key in _take_leading(domain, words):
        raise _depends(key)
    options, changes = parse_together(
        TrainOptions,
        defaults,
        words,
        prog="prism train",
        description=f"Train a policy with the settings of {file}.",
        hidden=HIDDEN,
    )
    for key in ("preset", "arm"):
        if key in changes:
            raise _depends(key)
    settings = apply_overrides(defaults, changes)
    if options.label is not None:
        settings = replace(settings, arm=options.label)
    needed = tuple(dict.fromkeys((*settings.plugins, *plugins)))
    return domain, options, replace(settings, plugins=needed)


def _depends(key: str) -> InputError:
    return InputError(
        f"{_leading_flag(key)} cannot be changed with --config, whose other settings depend on it. "
        "Remove --config; --label gives the arm another name."
    )


def _resume(words: list[str], domain: Domain | None) -> None:
    from prism_motor.domains import open_run

    run = Path(peek(words, "--resume") or "")
    _, found, config = open_run(run)
    if domain is not None and domain is not found:
        raise InputError(f"{run} is a run of {found.name}, not of {domain.name}.")
    _check_kept(run, config, _present_names(found, words))
    options = parse(
        ResumeOptions,
        _present_names(found, words),
        prog="prism train",
        description="Resume a run from its newest checkpoint, with its settings.",
    )
    _launch(found, None, options.resume, options)


def _check_kept(run: Path, config: Any, words: list[str]) -> None:
    """Reject flags of settings, which a resumed run keeps."""
    from prism_motor.runs import to_dict
    from prism_motor.runs.configs import flatten

    own = {field.name for field in fields(ResumeOptions)}
    kept = {*flatten(to_dict(config)), *(field.name for field in fields(TrainOptions))} - own
    for word in words:
        name = word.partition("=")[0].removeprefix("--")
        if word.startswith("--") and name.replace("-", "_") in kept:
            raise InputError(
                f"--{name} cannot be given with --resume: {run} keeps its settings. Remove it, or "
                f"start a new run with --config {run / CONFIG} --{name} ..."
            )


def _present_names(domain: Domain, words: list[str]) -> list[str]:
    """Return the arguments with the present, full names of flags."""
    setting = peek(words, "--set")
    if setting is not None:
        key, _, value = setting.partition("=")
        raise InputError(
            "--set is gone: every setting is a flag of its own. Write "
            f"--{key.replace('_', '-')} {value}".rstrip()
            + " instead."
        )
    words = rename(words, domain.renamed_flags, note="{old} is now called {new}.")
    return rename(words, domain.short_flags)


def _number(text: str | None) -> int:
    """Read a number for the defaults; errors are reported when all flags are parsed."""
    return int(text) if text is not None and text.isdecimal() else 1


def _launch(
    domain: Domain, settings: Any, path: Path, options: TrainOptions | ResumeOptions
) -> None:
    """Check the options, then train in this process or in several."""
    from prism_motor.runs import Run, to_dict
    from prism_motor.train.distributed import current_rank, launch

    _check_processes(options.processes)
    if settings is not None:
        Run.check_new(path)  # before other processes start, which takes a while
    if options.video_every is not None and current_rank().is_main:
        domain.check_videos()
    check_trackers(options.tracker or ())
    config = None if settings is None else to_dict(settings)
    again = options if isinstance(options, ResumeOptions) else None
    updates, device = (again.updates, again.device) if again else (None, None)
    work = (config, path, updates, options.video_every, device, options.tracker)
    if options.processes > 1:
        launch(options.processes, run_training, *work)
    else:
        run_training(*work)


def _check_processes(processes: int) -> None:
    """Raise if there are so many processes that they would only hinder each other."""
    cores = available_cores()
    if processes > 4 * cores:
        raise InputError(
            f"--processes {processes} is too much for {count(cores, 'core')}: the processes of a "
            f"training wait for each other in every update. Give at most {4 * cores}, best {cores}."
        )


def run_training(
    config: dict[str, Any] | None,
    path: Path,
    updates: int | None,
    video_every: int | None,
    device: str | None = None,
    tracker: Sequence[str] | None = None,
) -> None:
    """Train in this process: a new run or, without a config, resume the one at ``path``."""
    from prism_motor._console import Progress
    from prism_motor.runs.layout import VIDEOS
    from prism_motor.train import session
    from prism_motor.train.distributed import current_rank, disconnect
    from prism_motor.train.listeners import TrainingProgress
    from prism_motor.train.trackers import Trackers

    rank = current_rank()
    with ExitStack() as owned:
        owned.callback(disconnect)
        if config is not None:
            domain = domain_of(config)
            run, trainer = session.start(domain.read_config(config), path, rank)
        else:
            run, trainer = session.resume(path, updates, rank, device)
            domain = domain_of(run.config)
        owned.callback(run.close)
        # Only the main process prints and listens.
        total = updates or trainer.config.updates
        if not rank.is_main:
            session.train(run, trainer, total, rank=rank)
            return
        if trainer.updates >= total:
            finished = domain.finish(run)  # which may have been cut
            done = f"{path} already has {count(trainer.updates, 'update')}"
            print(f"{done}; use a larger --updates to continue. {finished}".rstrip())
            return
        team = f"{count(rank.world_size, 'process', 'processes')} x "
        print(f"{path}: {domain.summary(trainer)}, {team}{count(trainer.config.threads, 'thread')}")
        # Train, telling all listeners about every row of metrics.
        trackers = Trackers(run.path, run.config, tracker, trainer.updates)
        try:
            with Progress("", total, done=trainer.updates, unit="update") as progress:
                listeners = [trackers, TrainingProgress(progress, trainer.describe)]
                if video_every is not None:
                    folder = run.path / VIDEOS
                    listener = domain.video_listener(trainer, folder, video_every, progress.say)
                    listeners.append(listener)  # type: ignore[arg-type]

                def report(row: dict[str, float]) -> None:
                    for listener in listeners:
                        listener(row)
                    film = run.path / VIDEOS / f"{int(row['update']):08d}.mp4"
                    if video_every is not None and film.exists():
                        trackers.show_film(film, int(row["update"]))

                session.train(run, trainer, total, report, rank)
        except KeyboardInterrupt:
            more = f" --processes {rank.world_size}" if rank.world_size > 1 else ""
            more += f" --video-every {video_every}" if video_every else ""
            print(
                f"\nInterrupted after {count(trainer.updates, 'update')}; continue with: "
                f"prism train --resume {path}{more}",
                file=sys.stderr,
            )
            raise
        finally:
            trackers.close()
        finished = domain.finish(run)
        took = duration(trainer.seconds)
        print(f"Done: {count(trainer.updates, 'update')} in {took}. {finished}".rstrip())
        print(f"Next: prism eval {path}")


def replay(dump: Positional[Path]) -> None:
    """Repeat an update that diverged, from its dump.

    Args:
        dump: RUN/nonfinite/STEP.
    """
    from prism_motor.train import session

    row = session.replay(dump)
    print(f"The update after {dump} did not diverge here: {row}")
