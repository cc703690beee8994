"""Files of campaigns: found by name, path and folder; cleared, copied and reported."""

import json
from dataclasses import replace

import pytest

from prism_motor.campaigns import files
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.files import (
    copy_run,
    find_campaign,
    find_equal,
    library,
    report_campaign,
    write_record,
)
from prism_motor.campaigns.ledger import RunState, read_state
from prism_motor.campaigns.plan import Plan
from prism_motor.campaigns.tuning import plan_tuning
from prism_motor.nn import build_actor, count_parameters
from prism_motor.runs import Run, to_dict

from .conftest import campaign, plan, train


def untuned(made, folder):
    return Plan(made, folder).reported({arm.name: {} for arm in made.arms})


def test_a_campaign_is_found_by_file_name_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nseeds = [1]\noverrides.ppo.epochs = 2\n[[arms]]\nname = "a"\narm = "mlp"\n'
    )
    found, folder = find_campaign("mine.toml", preset="g1")
    assert (found.name, found.preset, folder) == ("mine", "g1", None)
    (tmp_path / "kept").mkdir()
    write_record(found, tmp_path / "kept")
    assert find_campaign(str(tmp_path / "kept")) == (found, tmp_path / "kept")
    with pytest.raises(CampaignError, match="uses the preset g1"):
        find_campaign(str(tmp_path / "kept"), preset="laptop")
    assert find_campaign("table1-g1")[0] == find_campaign("table1", preset="g1")[0]
    with pytest.raises(ValueError, match="Did you mean 'table1'"):
        find_campaign("tabel1")
    with pytest.raises(CampaignError, match="No such campaign file"):
        find_campaign("missing.toml")
    with pytest.raises(CampaignError, match="not a campaign folder"):
        find_campaign(str(tmp_path))
    file.write_text("name = ")
    with pytest.raises(CampaignError, match=r"mine.toml cannot be read"):
        find_campaign("mine.toml")


@pytest.mark.parametrize("name", library())
def test_the_library_can_be_planned_with_every_preset(name, tmp_path):
    made = find_campaign(name)[0]
    if made.kind == "manipulation":
        pytest.importorskip("metaworld", reason="Meta-World is not installed")
    if made.kind == "gymnasium":
        pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
    if name == "contact":
        pytest.importorskip("libero", reason="LIBERO is not installed")
    assert made.name == name
    assert made.description
    assert {arm.arm for arm in made.arms} <= {*made.domain.arms}  # no former names
    for preset in made.domain.presets:
        work = Plan(replace(made, preset=preset), tmp_path)
        tuning = plan_tuning(work)
        runs = work.reported({arm.name: None for arm in made.arms})
        assert len({run.path for run in [*tuning, *runs]}) == len(tuning) + len(runs)
        assert {run.config.preset for run in runs} == {preset}
        if made.updates is None and made.kind != "gymnasium":  # where the zoo says how many
            assert {run.config.updates for run in runs} == {made.domain.presets[preset].updates}
        if made.kind == "manipulation":
            prepared = not made.domain.presets[preset].demos
            assert len(work.preparations) == prepared * max(1, len(made.variants))


def test_the_largest_mlp_is_as_large_as_degree_three(tmp_path):
    def parameters(name, arm):
        runs = untuned(find_campaign(name)[0], tmp_path)
        config = next(run.config for run in runs if run.arm == arm)
        return count_parameters(build_actor(config.actor, 235, 12))

    assert parameters("capacity", "mlp-matched-degree3") == pytest.approx(
        parameters("degrees", "degree3"), rel=1e-3
    )


def test_every_prism_arm_of_table_one_has_a_control_of_its_size(tmp_path):
    sizes = {
        run.arm: count_parameters(build_actor(run.config.actor, 235, 12))
        for run in untuned(find_campaign("table1")[0], tmp_path)
    }
    assert sizes["mlp-matched"] == pytest.approx(sizes["prism"], rel=1e-2)
    assert sizes["mlp-matched-residual"] == pytest.approx(sizes["prism-residual"], rel=1e-2)


def test_when_crosses_its_three_factors(tmp_path):
    made = find_campaign("when")[0]
    seen = set()
    for run in untuned(made, tmp_path):
        task = run.config.task
        calm = task.randomisation.push_every == 0 and task.observations.noise == 0
        factors = (calm, task.actions.on_reference, task.observations.actor_frames)
        names = ("none" if calm else "full", "reference" if factors[1] else "plain")
        assert run.variant == f"{names[0]}-{names[1]}-{factors[2]}"
        seen.add(factors)
    assert len(seen) == len(made.variants) == 8


def test_campaigns_of_the_library_can_share_runs(tmp_path):
    def configs(name, variant="", arms=None):
        made = find_campaign(name)[0]
        chosen = [run for run in untuned(made, tmp_path) if run.variant == variant]
        runs = [*plan_tuning(Plan(made, tmp_path)), *chosen]
        wanted = [run.config for run in runs if arms is None or arms(run.config.arm)]
        return {json.dumps(to_dict(config)) for config in wanted}

    table = configs("table1")
    assert configs("degrees", arms=lambda arm: arm == "prism") <= table
    assert configs("capacity", arms=lambda arm: arm != "mlp-matched-degree3") <= table
    assert configs("when", "full-reference-5") <= table


def test_a_run_cut_before_its_first_checkpoint_is_begun_again(tmp_path):
    run = plan(tmp_path)[0]
    Run.create(run.path, json.loads("{}")).close()
    (run.path / "checkpoints" / ".00000000.123.tmp").mkdir()
    assert not run.has_begun
    assert "--config" in run.start_command()
    (run.path / "thesis.tex").write_text("")
    assert run.has_begun  # whatever it is, training will say that it is in the way
    train(plan(tmp_path)[1], 1)
    assert "--resume" in plan(tmp_path)[1].start_command()


def test_equal_runs_of_other_campaigns_are_found_and_copied(trained, tmp_path):
    first, second, third, _ = plan(tmp_path / "other")
    assert find_equal(first, [trained]) == trained / "mlp-1"
    assert find_equal(second, [trained]) is None  # half trained
    assert find_equal(third, [trained]) is None  # another seed
    assert find_equal(plan(tmp_path, updates=2)[1], [trained]) is None
    copy_run(trained / "mlp-1", first.path)
    assert read_state(first) == RunState(4, 4, 0, 1)
    assert (first.path / "provenance.json").read_text() == (
        trained / "mlp-1" / "provenance.json"
    ).read_text()


def test_runs_behind_links_are_not_taken_over(trained, tmp_path):
    first = plan(tmp_path / "other")[0]
    reused = tmp_path / "reused"
    reused.mkdir()
    (reused / "mlp-1").symlink_to(trained / "mlp-1")
    assert find_equal(first, [reused]) is None
    assert find_equal(first, [reused / "mlp-1"]) == reused / "mlp-1"  # given as it is
    copy = tmp_path / "copy" / "mlp-1"
    copy_run(trained / "mlp-1", copy)
    (copy / "metrics.jsonl").unlink()
    (copy / "metrics.jsonl").symlink_to(trained / "mlp-1" / "metrics.jsonl")
    with pytest.raises(CampaignError, match=r"metrics.jsonl is left out: it is a link"):
        copy_run(copy, first.path)
    assert not first.path.exists()


@pytest.mark.parametrize(
    ("arms", "given", "reference"),
    [
        (["mlp", "prism"], None, "mlp"),
        (["prism", "mlp-matched"], None, "mlp-matched"),
        (["gated", "mlp-larger"], None, "mlp-matched"),  # former names of the same
        (["gated", "mlp-larger"], "gated", "prism"),
        (["gated", "mlp-larger"], "prism", "prism"),
    ],
)
def test_the_reference_of_a_report(arms, given, reference, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "write_page", lambda folder, **options: options)
    made = campaign(arms=[{"name": name} for name in arms])
    assert report_campaign(made, tmp_path, given, command="x")["reference"] == reference
    with pytest.raises(ValueError, match="Unknown arm 'linear'"):
        report_campaign(made, tmp_path, "linear", command="x")
