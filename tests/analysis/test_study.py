"""One mechanism for all studies: commands, files, refusals, and studies of users."""

import json
import runpy
from dataclasses import dataclass
from pathlib import Path

import pytest

from prism_motor._figures import new_figure
from prism_motor.analysis import study as studies
from prism_motor.analysis.study import (
    STUDIES,
    Finding,
    ResultTable,
    Study,
    choose_study,
    describe,
    find_studies,
    register_study,
    run_study,
    write_finding,
)
from prism_motor.cli import main
from prism_motor.cli.flags import field_docs

EXAMPLE = Path(__file__).parents[2] / "examples" / "extend" / "my_study.py"


@dataclass(frozen=True)
class CountConfig:
    """Settings of a study for the tests."""

    times: int = 2
    """How often
    it counts."""
    where: Path | None = None
    """A path."""


def count(subjects, config, report):
    for _ in subjects:
        report("counted")
    table = ResultTable(["arm", "times"], [[s.arm, str(config.times)] for s in subjects])
    return Finding(
        "Counting",
        "What was counted.",
        {"": table, "second": table},
        data={"total": config.times * len(subjects)},
        figures={"picture": lambda: new_figure(2, 1)},
        notes=["A note."],
        left_out=["c is left out: it cannot count."],
    )


COUNT = Study("count", "locomotion", "Count.\n\nA paragraph.", CountConfig, count)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(studies, "STUDIES", dict(STUDIES))
    return studies.STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_the_table_says_what_the_studies_say(name):
    found = find_studies(name)
    assert {study.name for study in found} == {name}
    assert len({study.domain for study in found}) == len(found)
    for study in found:
        assert study.help.split("\n")[0] == STUDIES[name].summary


@pytest.mark.parametrize("name", STUDIES)
def test_every_setting_is_a_flag_with_help(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = capsys.readouterr().out
    for setting, text in field_docs(find_studies(name)[0].config).items():
        assert f"--{setting.replace('_', '-')}" in shown
        assert len(text) > 5


def test_a_study_of_a_user_is_a_command(registered, make_run, tmp_path, capsys):
    register_study(COUNT)
    register_study(COUNT)  # a module may be imported twice
    assert registered["count"].summary == "Count."
    out = tmp_path / "out"
    main(
        [
            "count",
            str(make_run("mlp")),
            str(tmp_path / "nowhere"),
            "--times",
            "3",
            "--out",
            str(out),
        ]
    )
    shown = capsys.readouterr().out
    assert "nowhere is left out" in shown
    assert "c is left out" in shown
    assert "A note." in shown
    data = json.loads((out / "count.json").read_text())
    assert data["total"] == 3
    assert data["config"] == {"times": 3, "where": None}
    assert (
        data["table"]
        == data["second_table"]
        == {"columns": ["arm", "times"], "rows": [["mlp", "3"]]}
    )
    assert len(data["left_out"]) == 2
    assert data["provenance"]
    assert (out / "picture.png").read_bytes()[1:4] == b"PNG"
    assert sorted(file.name for file in out.iterdir()) == ["count.json", "picture.png"]


def test_results_go_into_the_first_run(registered, make_run):
    run = make_run("mlp")
    files = run_study(COUNT, [run], CountConfig(where=Path("there")))
    assert files[0] == run / "analysis" / "count" / "count.json"
    assert json.loads(files[0].read_text())["config"]["where"] == "there"


def test_two_studies_of_one_name_are_of_different_domains(registered):
    register_study(COUNT)
    with pytest.raises(ValueError, match="already a study 'count' of locomotion runs"):
        register_study(Study("count", "locomotion", "Another.", CountConfig, count))
    register_study(Study("count", "tracking", "Another.", CountConfig, count))
    assert [study.domain for study in find_studies("count")] == ["locomotion", "tracking"]


def test_the_first_run_decides(registered, make_run, tmp_path):
    assert choose_study("probe", [make_run("mlp")]).domain == "locomotion"
    assert choose_study("probe", [tmp_path]).domain == "locomotion"  # refused when it is loaded
    registered["probe"] = studies.StudyCommand("", (find_studies("probe")[1], COUNT))
    assert choose_study("probe", [make_run("mlp")]) is COUNT
    other = Study("count", "tracking", "", CountConfig, count)
    registered["probe"] = studies.StudyCommand("", (find_studies("probe")[0], other))
    with pytest.raises(
        ValueError, match="is a locomotion run, but prism probe studies manipulation or"
    ):
        choose_study("probe", [make_run("mlp")])


def test_unknown_names_are_refused(make_run):
    with pytest.raises(ValueError, match="Did you mean 'probe'"):
        find_studies("prob")


def test_flags_are_those_of_the_domain_of_the_first_run(make_run, capsys):
    with pytest.raises(SystemExit):
        main(["probe", str(make_run("mlp")), "--help"])
    assert "--envs" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["probe", str(make_run("mlp")), "--episodes", "3"])
    assert stopped.value.code == 2


def test_tables_for_the_screen_replace_wide_ones():
    wide, short = ResultTable(["wide"], [["1"]]), ResultTable(["short"], [["2"]])
    text = describe(
        Finding("T", "C", {"": wide}, screen={"a few": short, "no": ResultTable([], [])})
    )
    assert text == "T\n\nA few\n\nshort\n2\n\nC"


def test_a_figure_that_fails_leaves_no_file_behind(tmp_path):
    def fail():
        raise ZeroDivisionError

    finding = Finding("T", "C", {}, figures={"broken": fail})
    with pytest.raises(ZeroDivisionError):
        write_finding("x", finding, CountConfig(), [], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_the_example_of_the_documentation(registered, make_run, tmp_path, capsys):
    source = EXAMPLE.read_text()
    assert source in (EXAMPLE.parents[2] / "docs" / "extend.md").read_text()
    assert len(source.splitlines()) <= 40
    runpy.run_path(str(EXAMPLE))
    run = str(make_run("mlp"))
    main(["torque-limits", run, "--seconds", "0.4", "--out", str(tmp_path)])
    data = json.loads((tmp_path / "torque-limits.json").read_text())
    assert len(data["table"]["rows"]) == 12
    assert all(0 <= float(row[-1]) <= 100 for row in data["table"]["rows"])
