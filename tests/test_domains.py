"""Domains as values: a user's own one goes through everything, and old runs find theirs."""

import json
import re
from pathlib import Path

import pytest

from prism_motor._plugins import load_plugins
from prism_motor.cli import main
from prism_motor.domains import DOMAINS, domain_of, open_run, require_domain
from prism_motor.runs import Run, RunError, to_dict
from prism_motor.runs.layout import walk_runs
from prism_motor.runs.shipped import SHIPPED, shipped_names

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "extend" / "my_domain.py"
STORED = [path for path, run in walk_runs(ROOT / "results") if run]


@pytest.mark.parametrize("name", ["locomotion", "manipulation", "gymnasium", "power"])
def test_a_domain_is_consistent(name):
    if name == "gymnasium":
        pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
    load_plugins([str(EXAMPLE)])
    domain = DOMAINS[name]
    assert domain.name == name
    assert domain.default_preset in domain.presets
    assert set(domain.evaluation().conditions) <= set(domain.conditions)
    assert set(domain.episode.KEY) <= set(domain.episode.__dataclass_fields__)
    assert domain.measures
    for measure in domain.measures:
        assert measure.field in domain.episode.__dataclass_fields__
    for preset in domain.presets:
        for arm in domain.arms:
            config = domain.make_config(preset, arm, seed=5)
            assert (config.kind, config.preset, config.arm, config.seed) == (name, preset, arm, 5)
            assert domain.read_config(json.loads(json.dumps(to_dict(config)))) == config
        assert domain.make_config(preset, arm, name="label").arm == "label"
        assert domain.make_config(preset, arm, overrides={"updates": 7}).updates == 7


def test_a_domain_of_ones_own_goes_through_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plugin = ("--plugin", str(EXAMPLE))
    main(["train", "power", "--updates", "5", "--checkpoint-every", "2", *plugin])
    run = tmp_path / "runs" / "small-prism-1"
    assert "Done: 5 updates" in capsys.readouterr().out
    assert Run.open(run).steps() == [2, 4, 5]
    # From here on the run says itself which plugin it needs.
    assert json.loads((run / "config.json").read_text())["plugins"] == [str(EXAMPLE)]
    main(["train", "--resume", str(run), "--updates", "7"])
    assert "Done: 7 updates" in capsys.readouterr().out
    main(["eval", str(run), "--episodes", "3", "--seeds", "1", "2"])
    said = capsys.readouterr().out
    assert "prism on small, preset small, training seed 1, checkpoint 7" in said
    assert "success" in said
    main(["eval", str(run), "--episodes", "3", "--seeds", "1", "2"])
    assert "6 episodes already done" in capsys.readouterr().out
    main(["train", "--config", str(run / "config.json"), "--out", "again", "--updates", "7"])
    one, two = (Run.open(path).load().tensors for path in (run, tmp_path / "again"))
    assert all(bool((one[name] == two[name]).all()) for name in one)


def test_the_domain_of_a_run_is_its_kind_and_walking_without_one():
    assert domain_of({"kind": "manipulation"}) is DOMAINS["manipulation"]
    assert domain_of({}) is DOMAINS["locomotion"]
    with pytest.raises(ValueError, match=r"Unknown domain 'flying'.*--plugin"):
        domain_of({"kind": "flying"})


def test_what_is_for_one_domain_refuses_others(tmp_path):
    Run.create(tmp_path / "run", {"kind": "manipulation"})
    require_domain(tmp_path / "run", "manipulation", "this")
    with pytest.raises(RunError, match="is a manipulation run, but prism play needs a loco"):
        require_domain(tmp_path / "run", "locomotion", "prism play")


@pytest.mark.skipif(not STORED, reason="no results in this checkout")
def test_settings_of_all_stored_runs_can_be_read():
    names = set()
    for path in STORED:
        run, domain, config = open_run(path)
        assert config.kind == domain.name
        called = ("updates", "iterations", "steps")  # the present name, then former ones
        assert config.updates == next(run.config[one] for one in called if one in run.config)
        names.add((domain.name, config.arm))
        assert domain.read_config(json.loads(json.dumps(to_dict(config)))) == config
        assert all(row["update"] >= 1 for row in run.metrics())
    assert {
        ("locomotion", "prism"), ("locomotion", "mlp-matched"), ("manipulation", "prism"),
        ("manipulation", "mlp-matched"), ("manipulation", "mlp-large"), ("manipulation", "linear"),
    } <= names  # fmt: skip


@pytest.mark.parametrize("name", shipped_names())
def test_settings_of_shipped_policies_can_be_read(name):
    run, domain, config = open_run(name)
    assert run.path == SHIPPED / name
    assert domain.name == {"g1-tracker": "tracking"}.get(name, "locomotion")
    assert config.arm in {"prism", "mlp-matched"}
    if domain.name == "tracking":
        assert config.networks.filter == "prism"
    else:
        assert config.actor.name == {"prism": "prism", "mlp-matched": "mlp"}[config.arm]


def solver(config):
    return config.task.simulation.solver if config.kind == "locomotion" else config.task.solver


@pytest.mark.parametrize("name", ["locomotion", "tracking"])
def test_runs_from_before_the_solver_had_versions_keep_the_first(name):
    domain = DOMAINS[name]
    config = domain.make_config(domain.default_preset, "prism")
    assert solver(config) == 2
    stored = json.loads(json.dumps(to_dict(config)))
    assert solver(domain.read_config(stored)) == 2
    simulation = stored["task"]["simulation"] if name == "locomotion" else stored["task"]
    del simulation["solver"]
    assert solver(domain.read_config(stored)) == 1


@pytest.mark.parametrize("run", [*shipped_names(), *STORED], ids=str)
def test_stored_runs_that_name_no_solver_have_the_first(run):
    opened, domain, config = open_run(run)
    if domain.name in ("locomotion", "tracking"):
        named = re.search(r'"solver": (\d)', (opened.path / "config.json").read_text())
        assert solver(config) == (int(named[1]) if named else 1)
