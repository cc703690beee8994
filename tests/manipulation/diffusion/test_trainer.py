"""What is specific to learning from demonstrations; sessions are tested in tests/train."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.domains import DOMAINS
from prism_motor.locomotion.policy import load_policy as load_walker
from prism_motor.manipulation.config import OptimiserConfig
from prism_motor.manipulation.policy import load_policy
from prism_motor.manipulation.trainer import HandlingTrainer
from prism_motor.runs import Run, RunError
from prism_motor.train import session
from prism_motor.train.distributed import Rank
from prism_motor.train.finite import NonFiniteTrainingError

from .conftest import demonstrations_of, make_config, make_demonstrations


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    monkeypatch.setattr("prism_motor.manipulation.data.load_for", demonstrations_of)


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def test_a_policy_that_sees_images_resumes_exactly(tmp_path):
    config = make_config(images=True)
    session.train(*session.start(config, tmp_path / "whole"))
    run, trainer = session.start(config, tmp_path / "cut")
    session.train(run, trainer, 7)  # between two rows of metrics, whose mean must go on too
    torch.manual_seed(999)
    session.train(*session.resume(tmp_path / "cut"))
    whole, cut = (Run.open(tmp_path / name) for name in ("whole", "cut"))
    assert_equal(whole.load().tensors, cut.load().tensors)
    assert [row["loss"] for row in whole.metrics()] == [row["loss"] for row in cut.metrics()]
    assert [row["update"] for row in cut.metrics()] == [4, 8, 12]


def test_random_shifts_are_the_same_for_all_arms_and_resume_exactly(tmp_path):
    def images_of(arm, updates, **changes):
        config = make_config(arm, images=True, **changes)
        trainer = HandlingTrainer(config, make_demonstrations(images=True))
        seen, forward = [], trainer.policy.forward

        def spy(batch):
            seen.append(batch["observation.images.corner2"].clone())
            return forward(batch)

        trainer.policy.forward = spy
        for _ in range(updates):
            trainer.update()
        return seen

    plain, shifted = images_of("prism", 3), images_of("prism", 3, random_shift=2)
    for one, other, linear in zip(
        plain, shifted, images_of("linear", 3, random_shift=2), strict=True
    ):
        assert one.shape == other.shape
        assert not torch.equal(one, other)
        assert torch.equal(other, linear)
    config = make_config(images=True, random_shift=2, updates=6)
    session.train(*session.start(config, tmp_path / "whole"))
    run, trainer = session.start(config, tmp_path / "cut")
    session.train(run, trainer, 4)
    session.train(*session.resume(tmp_path / "cut"))
    whole, cut = (Run.open(tmp_path / name) for name in ("whole", "cut"))
    assert_equal(whole.load().tensors, cut.load().tensors)


def test_all_arms_see_the_same_samples_and_noise(demonstrations, monkeypatch):
    seen = {}
    for arm in ("linear", "mlp-large", "prism"):
        trainer = HandlingTrainer(make_config(arm), demonstrations)
        noise = []
        real = torch.randn

        def spy(*sizes, real=real, noise=noise, **options):
            noise.append(real(*sizes, **options))
            return noise[-1]

        with monkeypatch.context() as patch:
            patch.setattr(torch, "randn", spy)
            trainer.update()
        seen[arm] = noise
    assert len(seen["linear"]) == 1
    for arm in ("mlp-large", "prism"):
        assert torch.equal(seen[arm][0], seen["linear"][0])


def test_training_learns(demonstrations):
    learner = OptimiserConfig(learning_rate=1e-2, warmup=2)
    config = replace(make_config(), updates=60, batch=32, log_every=15, optimiser=learner)
    trainer = HandlingTrainer(config, demonstrations)
    rows = [row for _ in range(60) if (row := trainer.update())]
    assert rows[-1]["loss"] < 0.9 * rows[0]["loss"]
    assert rows[-1]["update"] == 60


def test_the_learning_rate_warms_up_and_falls_to_zero(demonstrations):
    trainer = HandlingTrainer(replace(make_config(), log_every=1), demonstrations)
    rates = [row["learning_rate"] for _ in range(12) if (row := trainer.update())]
    assert rates[:3] == [0, 5e-4, 1e-3]
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] < 1e-4


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_a_broken_loss_or_gradient_is_noticed_before_any_weight_moves(demonstrations, where):
    trainer = HandlingTrainer(make_config(), demonstrations)
    trainer.update()
    before = trainer.state()
    if where == "loss":
        forward = trainer.policy.forward

        def broken(batch):
            loss, info = forward(batch)
            return loss * float("nan"), info

        trainer.policy.forward = broken
    else:
        parameter = next(trainer.policy.parameters())
        parameter.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(NonFiniteTrainingError, match=rf"{where}.* is (nan|-?inf)"):
        trainer.update()
    tensors, plain = trainer.state_before()
    assert_equal(tensors, before[0])
    assert plain == before[1]


def test_other_demonstrations_are_refused_on_resume(tmp_path, monkeypatch):
    session.train(*session.start(make_config(updates=2), tmp_path / "run"))
    other = make_demonstrations()
    other.vectors["action"][3] += 0.1
    monkeypatch.setattr("prism_motor.manipulation.data.load_for", lambda config: other)
    with pytest.raises(RunError, match="are not those the run started with"):
        session.resume(tmp_path / "run")


def test_one_process_trains(tmp_path):
    with pytest.raises(ValueError, match="remove --processes"):
        DOMAINS["manipulation"].trainer(make_config(), Rank(0, 2))


def test_policies_of_other_domains_are_refused(tmp_path):
    session.start(make_config(), tmp_path / "run")
    with pytest.raises(RunError, match="is a manipulation run, but this needs a locomotion run"):
        load_walker(tmp_path / "run")
    Run.create(tmp_path / "walk", {"preset": "laptop"})
    with pytest.raises(RunError, match="is a locomotion run, but this needs a manipulation run"):
        load_policy(tmp_path / "walk")


def test_the_task_gives_sizes_and_the_folder_of_demonstrations():
    domain = DOMAINS["manipulation"]
    planned = domain.make_config("state", "prism", overrides={"task.name": "reach-v3"})
    config = domain.prepare(planned)
    assert (config.task.state, config.task.objects, config.task.action) == (11, 10, 4)
    assert config.task.cameras == ()
    assert config.demos == "demos/metaworld-reach-v3"
    assert domain.prepare(config) == config
    assert domain.planned(config) == replace(domain.planned(planned), demos=config.demos)
    images = domain.prepare(domain.make_config("laptop", "prism"))
    assert len(images.task.cameras) == 2  # the suite's own
    chosen = {"task.cameras": ["corner2"]}
    one = domain.prepare(domain.make_config("laptop", "prism", overrides=chosen))
    assert one.task.cameras == ("corner2",)
    by_number = domain.make_config("state", "prism", overrides={"task.name": "0"})
    assert not domain.prepare(by_number).task.name.isdigit()
    with pytest.raises(ValueError, match="Did you mean 'reach-v3'"):
        domain.prepare(domain.make_config("state", "prism", overrides={"task.name": "reach-v2"}))
