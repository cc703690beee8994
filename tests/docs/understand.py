"""Reads commands of prism as the command line does and stops before anything is done.

A program of its own, because commands load plugins: ``python -m tests.docs.understand`` reads a
JSON list of lists of words and prints a JSON list with what is wrong with each, empty for nothing.
"""

import contextlib
import functools
import importlib
import io
import json
import sys
from pathlib import Path

from prism_motor import cli
from prism_motor.cli import flags
from prism_motor.domains import DOMAINS
from prism_motor.runs import to_dict

RUNS = {
    "locomotion": "laptop",
    "manipulation": "state",
    "tracking": "laptop",
    "gymnasium": "laptop",
}
"""Domains and presets of the runs that stand in for those that pages talk about."""


class UnderstoodError(BaseException):
    """The command was read to its end."""


def stop(*_, **__):
    raise UnderstoodError


def instead_of(function):
    """Return a function with the same arguments that ends the command."""
    return functools.wraps(function)(lambda *_, **__: stop())


def then_stop(function):
    """Return a function that does its work and then ends the command."""

    @functools.wraps(function)
    def wrapped(*values, **named):
        function(*values, **named)
        raise UnderstoodError

    return wrapped


def stop_early():
    """Make every command end as soon as its arguments have been read and checked."""
    load = importlib.import_module
    flags.check_arguments = then_stop(flags.check_arguments)
    for name in ("evaluate", "video", "study", "lab"):
        module = load(f"prism_motor.cli.{name}")
        module.parse_together = then_stop(module.parse_together)
    for name in ("pilot", "lab"):
        with contextlib.suppress(ImportError):  # pilots need LeRobot
            module = load(f"prism_motor.cli.{name}")
            module.parse = then_stop(module.parse)
    load("prism_motor.cli.train")._launch = stop
    campaign = load("prism_motor.cli.campaign")
    campaign.find_campaign_of = then_stop(campaign.find_campaign_of)
    load("prism_motor.train.estimate").measure = stop
    load("prism_motor.campaigns.estimate").estimate_campaign = stop
    known = load("prism_motor.cli.libero").SUBCOMMANDS
    known.update({name: instead_of(function) for name, function in known.items()})


def stand_in(path, domain):
    """Write a run folder of a domain, as far as reading arguments needs one."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(_settings(domain))


@functools.cache
def _settings(domain):
    return json.dumps(to_dict(DOMAINS[domain].make_config(RUNS[domain], "prism", seed=1)))


def named_runs(words):
    """Return the run folders that a command needs to read its arguments."""
    from prism_motor.analysis.study import STUDIES

    if words[0] in ("eval", "video"):
        found = words[1:2]
    elif words[0] in STUDIES:
        flag = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        found = words[1:flag]
    elif words[0] == "train" and ("--resume" in words or "--config" in words):
        flag = words.index("--resume" if "--resume" in words else "--config")
        found = [word.removesuffix("/config.json") for word in words[flag + 1 : flag + 2]]
    else:
        found = []
    shipped = {"g1-prism", "g1-mlp-matched", "g1-tracker"}
    return [word for word in found if word not in shipped and not word.startswith("-")]


def wrong_with(words):
    """Return what the command line says against a command; empty: nothing."""
    said = ""
    runs = named_runs(words) if words else []
    for domain in RUNS if runs else (None,):
        if domain is not None:
            for run in runs:
                stand_in(run, domain)
        said = _try(words)
        if not said:
            return ""
    return said


def _try(words):
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            cli.main(list(words))
    except UnderstoodError:
        return ""
    except SystemExit as end:
        return "" if end.code in (0, None) else out.getvalue()[-1500:] or "it ends with an error"
    return ""


def main():
    stop_early()
    json.dump([wrong_with(words) for words in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
