"""Ranges: every number that a user can set has one, it is checked, and --help shows it."""

import dataclasses
import json
import math
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from prism_motor._checks import InputError, PrismError, check_name, show
from prism_motor._ranges import (
    Bounds,
    Checked,
    Count,
    Seeds,
    above,
    between,
    check_arguments,
    check_ranges,
    describe_range,
    field_hints,
    length,
)
from prism_motor._registry import resolve
from prism_motor.analysis.study import STUDIES, find_studies
from prism_motor.campaigns.config import Arm, Campaign, Tuning, Variant
from prism_motor.campaigns.demo import DemoConfig
from prism_motor.cli import main
from prism_motor.cli.campaign import ReportOptions, RunOptions, StatusOptions
from prism_motor.cli.commands import COMMANDS
from prism_motor.cli.evaluate import EvalOptions
from prism_motor.cli.study import StudyOptions
from prism_motor.cli.train import ResumeOptions, TrainOptions
from prism_motor.domains import DOMAINS
from prism_motor.locomotion.task import TaskConfig
from prism_motor.locomotion.video import VideoConfig
from prism_motor.manipulation.compliance import ComplianceConfig
from prism_motor.manipulation.demonstrations.collection import CollectionConfig
from prism_motor.nn.actors import ACTORS
from prism_motor.studies.physics.config import QUICK, PhysicsConfig


@dataclass(frozen=True)
class Part(Checked, section="part"):
    """One of each kind."""

    rate: Annotated[float, above(0, 1)] = 0.5
    """How fast."""
    count: Annotated[int, between(1, 10)] = 3
    widths: Annotated[tuple[int, ...], between(1, 8), length(1, 3)] = (2,)
    pairs: tuple[tuple[Annotated[int, between(0, 5)], float], ...] = ()
    limit: Annotated[float | None, Bounds(0, 1, high_open=True)] = None
    weights: Annotated[dict[str, float], between(-1, 1)] = field(default_factory=dict)
    on: bool = False
    name: str = "x"
    mode: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.0}, "part.rate must be above 0 and at most 1, got 0.0."),
        ({"rate": 1.1}, "part.rate must be above 0 and at most 1, got 1.1."),
        ({"rate": math.nan}, "part.rate must be a finite number above 0 and at most 1, got nan."),
        ({"rate": math.inf}, "part.rate must be a finite number above 0 and at most 1, got inf."),
        ({"rate": True}, "part.rate must be a number above 0 and at most 1, got True (bool)."),
        ({"rate": "1"}, "part.rate must be a number above 0 and at most 1, got '1' (str)."),
        ({"rate": 10**400}, "part.rate must be above 0 and at most 1, got 1000"),
        ({"rate": 10**5000}, "part.rate must be above 0 and at most 1, got a very large int."),
        ({"count": 0}, "part.count must be from 1 to 10, got 0."),
        ({"count": 3.0}, "part.count must be a whole number from 1 to 10, got 3.0 (float)."),
        ({"count": False}, "part.count must be a whole number from 1 to 10, got False (bool)."),
        ({"count": None}, "part.count must be a whole number from 1 to 10, got None (NoneType)."),
        ({"widths": ()}, "part.widths must have 1 to 3 values, got 0."),
        ({"widths": (1,) * 4}, "part.widths must have 1 to 3 values, got 4."),
        ({"widths": (1, 0)}, "part.widths[1] must be from 1 to 8, got 0."),
        ({"widths": 3}, "part.widths must be a list, got 3."),
        ({"pairs": ((6, 1.0),)}, "part.pairs[0][0] must be from 0 to 5, got 6."),
        ({"pairs": ((6,),)}, "part.pairs[0] must have 2 values, got 1."),
        ({"limit": 1.0}, "part.limit must be at least 0 and below 1, got 1.0."),
        ({"weights": {"torque": -2.0}}, "part.weights.torque must be from -1 to 1, got -2.0."),
        ({"weights": {3: 0.0}}, "A name in part.weights must be a text, got 3."),
        ({"weights": [1]}, "part.weights must be values by name, got [1]."),
        ({"on": 1}, "part.on must be true or false, got 1."),
        ({"name": 5}, "part.name must be a text, got 5."),
        ({"mode": "c"}, "part.mode must be one of a, b, got 'c'."),
    ],
)
def test_what_is_out_of_range_is_named_with_the_range(changes, message):
    with pytest.raises(InputError) as refused:
        Part(**changes)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 200


def test_both_ends_of_a_range_are_inside_unless_open():
    Part(rate=1.0, count=1, widths=(1, 8, 8), limit=0.0, weights={"a": 1.0, "b": -1.0})
    Part(rate=1, count=10, limit=None, widths=[3], pairs=((0, -1e9), (5, 1e9)))


def test_a_section_may_be_given_to_a_subclass():
    class Inner(Part, section="outer.inner"):
        pass

    with pytest.raises(InputError, match=r"outer.inner.count must be"):
        Inner(count=0)
    assert Part.section == "part"


def test_arguments_of_functions_are_checked_by_their_flags():
    def command(seconds_left: Annotated[float | None, above(0, 60)], name: str = "") -> None:
        pass

    check_arguments(command, {"seconds_left": None, "name": "x"})
    with pytest.raises(InputError, match=r"--seconds-left must be a finite number above 0"):
        check_arguments(command, {"seconds_left": math.nan})

    def either(speed: tuple[float, float] | Literal["task"]) -> None:
        pass

    check_arguments(either, {"speed": "task"})
    check_arguments(either, {"speed": (1.0, 2.0)})
    with pytest.raises(InputError, match=r"--speed\[1\] must be a finite number"):
        check_arguments(either, {"speed": (1.0, math.inf)})


def test_ranges_are_described_in_words():
    described = {name: describe_range(hint) for name, hint in field_hints(Part).items()}
    assert described == {
        "rate": "above 0 and at most 1",
        "count": "from 1 to 10",
        "widths": "1 to 3 values, each from 1 to 8",
        "pairs": "from 0 to 5",
        "limit": "at least 0 and below 1",
        "weights": "from -1 to 1",
        "on": "", "name": "", "mode": "",
    }  # fmt: skip
    assert describe_range(Count) == "from 1 to 1e9"
    assert describe_range(Seeds) == "1 to 10000 values, each from 0 to 2147483647"
    assert str(between(1e-5, 2**31 - 1)) == "from 1e-5 to 2147483647"


# All settings of the package ---------------------------------------------------------------------


def settings():
    """All dataclasses whose fields a user can set, by files, flags or in Python."""
    for name in sorted(DOMAINS.own):
        domain = DOMAINS[name]
        yield from (domain.config, domain.evaluation)
        if domain.preparation is not None:
            yield domain.preparation
    for name in STUDIES:
        yield from (study.config for study in find_studies(name))
    yield from ACTORS.values()
    yield from (TaskConfig, PhysicsConfig, VideoConfig, CollectionConfig, ComplianceConfig)
    yield from (Campaign, Arm, Variant, Tuning, DemoConfig)
    yield from (TrainOptions, ResumeOptions, EvalOptions, StudyOptions)
    yield from (RunOptions, StatusOptions, ReportOptions)


def unranged(kind, where=""):
    """The numbers of a dataclass without a range, those of its sections included."""
    for name, hint in field_hints(kind).items():
        yield from leaves(hint, f"{where}{name}", ranged=False)


def leaves(hint: Any, where, *, ranged):
    if typing.get_origin(hint) is Annotated:
        hint, *marks = typing.get_args(hint)
        ranged = ranged or any(isinstance(mark, Bounds) for mark in marks)
    if hint in (int, float) and not ranged:
        yield where
    elif dataclasses.is_dataclass(hint):
        yield from unranged(hint, f"{where}.")
    elif typing.get_origin(hint) is not Literal:
        for one in typing.get_args(hint):
            yield from leaves(one, where, ranged=ranged)


@pytest.mark.parametrize("kind", [*dict.fromkeys(settings())], ids=lambda kind: kind.__name__)
def test_every_number_of_every_setting_has_a_range(kind):
    assert [*unranged(kind)] == []
    assert issubclass(kind, Checked)


def test_the_walk_finds_numbers_without_a_range():
    @dataclass
    class Loose:
        part: Part
        many: dict[str, tuple[float, ...]]
        bounded: Annotated[tuple[float, ...], between(0, 1)]

    assert [*unranged(Loose)] == ["part.pairs", "many"]


@pytest.mark.parametrize(
    "name",
    [name for name, command in COMMANDS.items() if not command.raw],
)
def test_every_number_of_every_command_has_a_range(name):
    function = resolve(f"prism_motor.cli.{COMMANDS[name].place}")
    hints = typing.get_type_hints(function, include_extras=True)
    assert [one for key, hint in hints.items() for one in leaves(hint, key, ranged=False)] == []


@pytest.mark.parametrize("name", sorted(DOMAINS.own))
def test_all_presets_and_arms_are_inside_the_ranges(name):
    domain = DOMAINS[name]
    for preset in domain.presets:
        for arm in domain.arms:
            check_ranges(domain.make_config(preset, arm))
    check_ranges(QUICK)


RUNS = sorted((Path(__file__).parents[1] / "results").rglob("config.json"))


def test_runs_of_the_results_are_inside_the_ranges():
    assert RUNS
    for file in RUNS:
        data = json.loads(file.read_text())
        domain = DOMAINS[data.get("kind", "locomotion")]
        check_ranges(domain.read_config(data, str(file)))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["train", "locomotion"],
            [
                "Discount. (above 0 and at most 1; default: 0.99)",
                "(from 0 to 2147483647; default: 1)",
                "(1 to 16 values, each from 1 to 8192; default: 256 128 64)",
                "not below zero. (each from -1e6 to 1e6)",
                "(from 0.01 to 100; default: 1.0)",
            ],
        ),
        (["train", "manipulation"], ["(at least 0 and below 1; default: 0.95 0.999)"]),
        (["demo"], ["(from 1 to 1e9; default: 300)"]),
        (["record"], ["(from 0 to 1024; default: 0)", "(from 1 to 100000; default: 50)"]),
        (["campaign", "run"], ["--jobs INT ", "in Slurm's queue. (from 1 to 1024)"]),
        (
            ["play"],
            ["default: 0.4 0 0. (from -100 to 100)", "several take turns. (0 to 100 values)"],
        ),
        (["train", "tracking"], ["log-odds: log p/(1-p), signed"]),
        (["eval", "g1-prism"], ["(from 1 to 1e6; default: 100)"]),
        (["explain", "g1-prism"], ["(from 2 to 100000; default: 24)"]),
    ],
)
def test_help_shows_the_ranges(words, shown, capsys, monkeypatch):
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for part in shown:
        assert part in text


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "G1-prism_2", "x.y", "0", "_x", "é", "x" * 100])
def test_names_of_folders(name):
    assert check_name("run", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", ".hidden", "../x", "a/b", "a\\b", "/x", "-x", "a\0", "a\nb", "a b", "a.",
        "C:", "a*", "a?", 'a"', "a<", "a>", "a|", "con", "NUL", "com1.txt", "x" * 101, None, 3,
    ],
)  # fmt: skip
def test_what_cannot_name_a_folder(name):
    with pytest.raises(PrismError, match="cannot be the name of a run"):
        check_name("run", name)


def test_more_signs_are_allowed_where_asked_for():
    assert check_name("run", "a=1,b=[2, 3]", also="=,[] ")
    with pytest.raises(InputError):
        check_name("run", "a=1/2", also="=,[] ")


def test_values_are_shown_shortly():
    assert show("x") == "'x'"
    assert len(show("x" * 10_000)) < 100
    assert show(10**5000) == "a very large int"
