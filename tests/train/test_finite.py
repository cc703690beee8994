"""Values that are not finite: the message names where they came from."""

import pytest
import torch
from torch import nn

from prism_motor.train import finite
from prism_motor.train.finite import NonFiniteTrainingError, StepWatch

NAN, INF = float("nan"), float("inf")


def test_observations_and_rewards_name_their_environment():
    good = torch.zeros(4, 3)
    bad = good.clone()
    bad[2, 1] = NAN
    finite.check_observations([("policy", good)])
    with pytest.raises(NonFiniteTrainingError, match="'critic' of environment 2, entry 1"):
        finite.check_observations([("policy", good), ("critic", bad)])
    finite.check_rewards(good[:, 0])
    with pytest.raises(NonFiniteTrainingError, match="reward of environment 1"):
        finite.check_rewards(torch.tensor([0.0, INF]))


def test_numbers_and_values_say_what_they_are():
    finite.check_numbers("loss", {"value": 0.0})
    with pytest.raises(NonFiniteTrainingError, match="loss 'value' is nan"):
        finite.check_numbers("loss", {"entropy": 1.0, "value": NAN})
    finite.check("the mean", torch.full((1000,), 3e38))  # the sum is not finite, the values are
    with pytest.raises(NonFiniteTrainingError, match=r"the mean is -inf \(2 of 3 values"):
        finite.check("the mean", torch.tensor([-INF, 1.0, INF]))
    with pytest.raises(NonFiniteTrainingError, match=r"^the loss is nan$"):
        finite.check("the loss", torch.tensor(NAN))


def test_gradients_weights_buffers_and_moments_are_named():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    models, optimizer = {"actor": model}, torch.optim.Adam(model.parameters())
    model(torch.randn(3, 2)).square().sum().backward()
    optimizer.step()
    for check in (finite.check_gradients, finite.check_weights):
        check(models)
    finite.check_optimizer(optimizer)
    model[0].weight.grad[0, 1] = INF
    with pytest.raises(
        NonFiniteTrainingError, match=r"gradient 'actor\.0\.weight' is inf \(1 of 4"
    ):
        finite.check_gradients(models)
    model[1].running_var[1] = NAN
    with pytest.raises(NonFiniteTrainingError, match=r"weight 'actor\.1\.running_var' is nan"):
        finite.check_weights(models)
    optimizer.state[model[0].bias]["exp_avg_sq"][0] = INF
    with pytest.raises(NonFiniteTrainingError, match=r"state 'parameter 1, exp_avg_sq' is inf"):
        finite.check_optimizer(optimizer)


def test_a_bad_weight_explains_what_follows_from_it():
    model, error = nn.Linear(2, 2), NonFiniteTrainingError("the loss is nan")
    assert finite.explain(error, {"policy": model}, " in step 2") == "the loss is nan in step 2"
    with torch.no_grad():
        model.bias[0] = NAN
    said = finite.explain(error, {"policy": model}, " in step 2")
    assert said.startswith("the loss is nan in step 2, because weight 'policy.bias' is nan (1 of 2")


@pytest.fixture
def watched():
    """Two layers and an optimiser that is watched."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, StepWatch({"critic": model}, optimizer)


def test_steps_of_finite_gradients_are_counted_and_taken(watched):
    model, optimizer, watch = watched
    before = model[0].weight.clone()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert watch.steps == 3
    assert not torch.equal(before, model[0].weight)


def test_a_gradient_is_named_although_clipping_spreads_it(watched):
    model, optimizer, watch = watched
    before = [p.clone() for p in model.parameters()]
    model(torch.tensor([[1.0, INF, 1.0]])).sum().backward()  # the second layer's is inf, too
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert all(p.grad.isnan().any() for p in model.parameters() if p.dim() == 2)
    with pytest.raises(NonFiniteTrainingError, match=r"gradient 'critic\.1\.weight' is"):
        optimizer.step()
    assert watch.steps == 0
    assert all(map(torch.equal, before, model.parameters()))  # nothing was changed
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()  # the next one is judged by itself
    assert watch.steps == 1


def test_a_gradient_that_comes_from_another_process_is_named(watched):
    model, optimizer, _ = watched
    model(torch.ones(2, 3)).sum().backward()
    model[0].bias.grad[1] = NAN  # what an average over processes does
    with pytest.raises(NonFiniteTrainingError, match=r"gradient 'critic\.0\.bias' is nan \(1 of 3"):
        optimizer.step()


def test_a_step_that_overflows_names_the_weight(watched):
    model, optimizer, _ = watched
    optimizer.param_groups[0]["lr"] = 3e35
    model(torch.full((2, 3), 1e6)).sum().backward()
    with pytest.raises(NonFiniteTrainingError, match=r"weight 'critic\.0\.weight' is -?inf"):
        optimizer.step()
