"""A domain of a user's own is reported by the same code, with nothing but its measures."""

from dataclasses import dataclass

import pytest

from prism_motor.domains import DOMAINS, Domain
from prism_motor.report import write_report
from prism_motor.reporting import Execution
from prism_motor.runs import Run, to_dict
from prism_motor.statistics import Measure
from prism_motor.train.config import RunConfig


@dataclass(frozen=True, kw_only=True)
class JugglingConfig(RunConfig):
    kind: str = "juggling"
    balls: int = 3


class Juggling(Domain):
    name = "juggling"
    title = "Juggling"
    config = JugglingConfig
    conditions = ("calm", "windy")
    measures = (
        Measure("caught", "catches", "%", 1, True, 100.0),
        Measure("height", "height", "m", 2),
    )

    def trainer(self, config, rank):
        raise NotImplementedError

    def load_policy(self, run, step=None):
        raise NotImplementedError


@pytest.fixture
def juggling(monkeypatch):
    monkeypatch.setitem(DOMAINS._entries, "juggling", Juggling())


def write(path, arm, seed, caught):
    config = JugglingConfig(preset="three", arm=arm, seed=seed, updates=5)
    run = Run.create(path, to_dict(config))
    run.log({"update": 5, "seconds": 60.0, "loss": 0.5})
    run.close()
    for condition in ("calm", "windy"):
        data = {
            "schema": 1,
            "condition": {"name": condition},
            "protocol": {},
            "evaluation_seed": 101,
            "checkpoint": 5,
            "policy_sha256": f"{seed:064x}",
            "episodes": [{"caught": n < caught, "height": 1.0 + n} for n in range(4)],
        }
        run.write_evaluation(f"{condition}-101", data)


def test_a_domain_needs_measures_and_conditions_alone(tmp_path, juggling):
    for arm, counts in (("mlp-matched", (1, 2, 1)), ("prism", (3, 4, 4))):
        for seed, caught in enumerate(counts, start=1):
            write(tmp_path / f"{arm}-{seed}", arm, seed, caught)
    report = write_report(tmp_path)
    assert report.problems == ()
    (chapter,) = report.chapters
    assert chapter.title == "three"
    assert chapter.main.title == "Calm condition"
    assert chapter.main.columns == ("arm", "catches, %\u00a0↑", "height, m")
    assert [row[0].text for row in chapter.main.rows] == ["mlp-matched", "prism"]
    assert chapter.conditions[0].columns == ("arm", "calm", "windy")
    subjects = [subject for subject, _ in chapter.findings]
    assert subjects == ["prism against mlp-matched:", "Away from calm:"]


def test_executions_are_part_of_a_label():
    assert Execution().label("prism") == "prism"
    assert Execution("mcc").label("prism") == "prism + mcc"
    assert Execution("mcc", "Kp 50").label("prism") == "prism + mcc, Kp 50"


def test_episodes_of_one_policy_are_a_table():
    rows = [{"caught": n < 3, "height": 1.0 + n} for n in range(4)]
    written = Juggling().evaluation_table({"calm": rows, "windy": rows[:1]})
    lines = written.splitlines()
    assert lines[0].split() == ["calm", "windy"]
    assert lines[1].split() == ["episodes", "4", "1"]
    assert lines[2].split() == [
        "catches,",
        "%",
        "75.0",
        "[30.1,",
        "95.4]",
        "100.0",
        "[20.7,",
        "100.0]",
    ]
    assert lines[3].split() == ["height,", "m", "2.50", "±", "1.29", "1.00"]
    assert "none of this says how training seeds differ" in written.replace("\n", " ")
