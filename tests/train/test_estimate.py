"""What a run will take: sizes are exact, measured rates are scaled to the whole run."""

import pytest

from prism_motor._checks import InputError
from prism_motor.campaigns.estimate import estimate_campaign
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.train.estimate import Rates, estimate_run, measure
from tests.campaigns.conftest import campaign, tuned
from tests.train.cases import CASES


@pytest.mark.parametrize("name", ["locomotion", "manipulation", "tracking"])
def test_every_domain_can_be_measured(name):
    undo = CASES[name].setup()
    try:
        config = CASES[name].make()
        rates = measure(config, 0.01)
        assert len(rates.seconds) == (2 if name == "tracking" else 1)
        assert all(seconds > 0 for seconds in rates.seconds)
        assert rates.memory > 1e8
        found = estimate_run(config, rates)
        assert found.seconds == pytest.approx(rates.time(config))
        assert (found.physics > 0) == (name != "manipulation")
        assert found.gpu_seconds == 0
    finally:
        undo.undo()


def test_the_paper_takes_as_many_steps_as_it_says():
    domain = DOMAINS["locomotion"]
    config = domain.make_config("paper", "prism")
    assert domain.size(config) == (737_525_760, 7_375_257_600)
    (part,) = domain.stretches(config)
    assert part.config.envs * part.scale == config.envs
    # The measured environments take as long each as all of them.
    assert Rates((2.0,), (1.0,), 0.0).time(config) == 2.0 * config.updates


def test_both_stages_of_tracking_are_counted():
    config = CASES["tracking"].make()
    warm, rest = DOMAINS["tracking"].stretches(config)
    assert (warm.updates, rest.updates) == (2, 4)
    assert rest.scale * rest.config.learner.sweeps == config.learner.sweeps
    assert Rates((10.0, 1.0), (5.0, 0.5), 0.0).time(config) == 24.0


def test_processes_share_the_environments_and_use_cores_of_their_own():
    config = CASES["locomotion"].make()
    assert DOMAINS["locomotion"].share(config, 2).envs == config.envs // 2
    rates = Rates((2.0,), (1.5,), 0.0)
    alone, shared = (estimate_run(config, rates, processes=number) for number in (1, 2))
    assert alone.core_seconds == 1.5 * config.updates  # processor time, not that of waiting
    assert (shared.seconds, shared.core_seconds) == (alone.seconds, 2 * alone.core_seconds)
    with pytest.raises(InputError, match="shared evenly by 3 processes"):
        measure(config, 0.01, 3)
    with pytest.raises(InputError, match="tracking trains in a single process"):
        measure(CASES["tracking"].make(), 0.01, 2)


def test_a_campaign_is_all_of_its_runs_with_the_tuning(tmp_path):
    said = []
    plain = estimate_campaign(campaign(), tmp_path / "no", 0.01, said.append)
    assert said == ["measuring mlp ...", "measuring prism ..."]
    (runs, found) = plain["runs"]
    assert (runs, found.samples) == (4, 4 * 4 * 6 * 8)
    stages = estimate_campaign(tuned("locomotion"), tmp_path / "no", 0.01, said.append)
    assert stages["tuning"][0] == 4
    assert stages["tuning"][1].samples == found.samples // 2  # half as long
    assert not (tmp_path / "no").exists()


def test_the_command_prints_a_table_for_runs_and_campaigns(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ("--envs", "4", "--ppo.steps", "4", "--ppo.minibatches", "1", "--threads", "1")
    main(["estimate", "locomotion", *small, "--updates", "1000", "--seconds", "0.01"])
    said = capsys.readouterr().out
    assert "1,000 updates, 1 thread, cpu" in said
    assert "16,000" in said
    main(["estimate", "smoke", "--seconds", "0.01"])
    said = capsys.readouterr().out
    assert "in all" in said
    assert "core-hours" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "why"), [("long", "must be a number of seconds"), ("0", "must be above 0")]
)
def test_a_length_that_is_none_is_refused(given, why, capsys):
    with pytest.raises((SystemExit, InputError)):
        main(["estimate", "locomotion", "--seconds", given])
    assert f"--seconds {why}" in capsys.readouterr().err
