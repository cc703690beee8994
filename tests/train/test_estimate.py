"""What a run will take: sizes are exact, measured rates are scaled to the whole run."""

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.campaigns.estimate import estimate_campaign
from prism_motor.campaigns.files import find_campaign
from prism_motor.cli import estimate as estimate_command
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.protocols import Stretch
from prism_motor.runs import to_dict
from prism_motor.tracking.learning.learner import TrackingLearner
from prism_motor.tracking.learning.parts import count_weights
from prism_motor.tracking.learning.replay import replay_bytes
from prism_motor.train import estimate as estimating
from prism_motor.train.estimate import (
    Rates,
    _scale,
    _time_updates,
    estimate_run,
    limit_memory,
    measure,
    tell_scaled,
)
from tests.campaigns.conftest import campaign, tuned
from tests.train.cases import CASES


@pytest.mark.parametrize("name", ["locomotion", "manipulation", "tracking", "gymnasium"])
def test_every_domain_can_be_measured(name):
    undo = CASES[name].setup()
    try:
        config = CASES[name].make()
        rates = measure(config, 0.01)
        assert len(rates.seconds) == (2 if name == "tracking" else 1)
        assert all(seconds > 0 for seconds in rates.seconds)
        assert 1e8 < rates.memory < 3e9
        assert rates.start > 0.5  # torch alone takes longer to import
        assert rates.core_start > 0
        found = estimate_run(config, rates)
        assert found.seconds == pytest.approx(rates.time(config) + rates.start)
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


def test_a_measured_replay_buffer_is_small_and_the_run_s_is_counted():
    domain = DOMAINS["tracking"]
    config = domain.make_config("paper", "prism")
    (part,) = domain.stretches(config)
    assert part.config.replay.rows == 100
    steps = part.config.learner.gradient_steps * part.learning_scale
    assert (steps, part.config.learner.sweeps * part.scale) == (16.0, 25)
    config = replace(config, networks=part.config.networks)
    sizes = {"observation": 10, "action": 2}
    replay = SimpleNamespace(sizes=sizes, bytes=replay_bytes(100, config.envs, sizes))
    whole = replay_bytes(config.replay.rows, config.envs, sizes)
    measured = SimpleNamespace(replay=replay, config=part.config)
    assert domain.reserved(config, measured) + replay.bytes == whole
    elsewhere = replace(config, device="cuda", replay=replace(config.replay, place="device"))
    assert domain.reserved(elsewhere, measured) == 0


class Sleeper:
    """A trainer that spends half of its time on gradient steps, a quarter on acting."""

    updates = 0

    def update(self):
        time.sleep(0.01)
        self.updates += 1
        return {"time/update": 0.5, "time/policy": 0.25}


def test_gradient_steps_that_were_left_out_are_added():
    took, _, shares = _time_updates(Sleeper(), 0.05)
    assert 0.01 <= took < 0.5
    assert shares == (0.5, 0.25)
    # A quarter is physics, whatever learns; networks are three times as large, and a step of them
    # stands for four.
    part = Stretch(None, 1, 2.0, learning_scale=4.0, network_scale=3.0)
    assert _scale(part, *shares) == pytest.approx(2 * (0.25 + 0.5 * 4 * 3 + 0.25 * 3))
    assert _scale(Stretch(None, 1), *shares) == 1.0


def test_deep_networks_are_measured_by_flat_ones_and_scaled_by_their_weights():
    domain = DOMAINS["tracking"]
    case = CASES["tracking"].make()
    deep = replace(case, networks=replace(case.networks, layers=5, critic_embedding=4))
    sizes = []
    for config in (deep, domain.stretches(deep)[1].config):
        learner = TrackingLearner(config, config.task.layout)
        weights = [list(network.parameters()) for network in learner.models().values()]
        actor = sum(p.numel() for p in learner.policy.actor.parameters())
        sizes.append((actor, sum(p.numel() for parameters in weights for p in parameters)))
    (actor, whole), (flat_actor, flat_whole) = sizes
    assert whole > 1.2 * flat_whole
    warm, rest = domain.stretches(deep)
    assert rest.network_scale == rest.memory_scale == warm.memory_scale == whole / flat_whole
    assert warm.network_scale == actor / flat_actor  # PPO teaches the actor alone
    assert warm.told == rest.told == "1 layer of 5"
    assert tell_scaled([deep]) == "Measured with 1 layer of 5 and scaled up."
    # Rows of the buffer do not grow with the networks.
    sizes_of_rows = {"observation": 10, "action": 2}
    rows = replay_bytes(100, deep.envs, sizes_of_rows)
    replay = SimpleNamespace(sizes=sizes_of_rows, bytes=rows)
    few = SimpleNamespace(replay=replay, config=rest.config)
    more = domain.reserved(deep, few)
    whole_buffer = replay_bytes(deep.replay.rows, deep.envs, sizes_of_rows)
    assert more + rest.memory_scale * rows == pytest.approx(whole_buffer, abs=1)


def test_the_paper_s_learner_is_measured_on_an_ordinary_machine():
    domain = DOMAINS["tracking"]
    config = domain.make_config("paper", "prism")
    (part,) = domain.stretches(config)
    _, weights = count_weights(part.config, config.task.layout)
    # Weights, gradients, moments, targets and what an update may have to put back: nine floats.
    assert 9 * 4 * weights < 4e9
    assert weights * part.network_scale == pytest.approx(442e6, rel=0.01)
    for arm in ("mlp", "prism"):  # a laptop's networks are measured as they are
        assert all(one.told == "" for one in domain.stretches(domain.make_config("laptop", arm)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_measurement_fails_before_it_takes_all_memory():
    with limit_memory(1e9):
        torch.ones(1000)
        with pytest.raises(RuntimeError, match="allocate memory"):
            torch.ones(1_000_000_000)
    with limit_memory(None):
        torch.ones(1000)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_run_that_needs_too_much_memory_is_one_message(monkeypatch):
    monkeypatch.setattr(estimating, "_free_memory", lambda: 1e9)
    monkeypatch.setattr(estimating._Rehearser, "_measure", lambda *_: torch.ones(1_000_000_000))
    job = estimating._Rehearsal(to_dict(CASES["locomotion"].make()), 0.01, time.monotonic())
    with pytest.raises(InputError, match=r"Measuring .* needs more memory than the 1\.0 GB"):
        estimating._Rehearser()(job)


def test_every_process_of_a_run_starts():
    config = CASES["locomotion"].make()
    rates = Rates((2.0,), (1.0,), 0.0, start=30.0, core_start=6.0)
    once, twice = (estimate_run(config, rates, 10.0, jobs=jobs) for jobs in (1, 2))
    assert once.seconds == 2.0 * config.updates + 30.0 + 10.0
    assert once.core_seconds == 1.0 * config.updates + 6.0 + 5.0
    assert once.guessed == 5.0  # of evaluations, as busy as training
    assert (twice.seconds, twice.core_seconds) == (once.seconds + 30, once.core_seconds + 6)


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
    assert found.seconds > 8 * 0.5  # every run has a process that trains and one that evaluates
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
    assert "scaled up" not in said
    main(["estimate", "smoke", "--seconds", "0.01"])
    said = capsys.readouterr().out
    assert "in all" in said
    assert "core-hours" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "called"), [("tracking", "_estimate_run"), ("tracking-laptop", "_estimate_campaign")]
)
def test_a_campaign_called_like_a_domain_is_named_with_its_preset(name, called, monkeypatch):
    found = []
    for one in ("_estimate_run", "_estimate_campaign"):
        monkeypatch.setattr(estimate_command, one, lambda words, *_, one=one: found.append(one))
    main(["estimate", name])
    assert found == [called]
    assert find_campaign("tracking-laptop")[0].name == "tracking"


@pytest.mark.parametrize(
    ("given", "why"), [("long", "must be a number of seconds"), ("0", "must be above 0")]
)
def test_a_length_that_is_none_is_refused(given, why, capsys):
    with pytest.raises((SystemExit, InputError)):
        main(["estimate", "locomotion", "--seconds", given])
    assert f"--seconds {why}" in capsys.readouterr().err
