"""Values that are not finite: the message names where they came from."""

import pytest
import torch

from prism_motor.train.finite import NonFiniteTrainingError, check_step, check_update


def test_observations_and_rewards_name_their_environment():
    good = torch.zeros(4, 3)
    bad = good.clone()
    bad[2, 1] = float("nan")
    check_step([("policy", good)], good[:, 0])
    with pytest.raises(NonFiniteTrainingError, match="'critic' of environment 2, entry 1"):
        check_step([("policy", good), ("critic", bad)], good[:, 0])
    with pytest.raises(NonFiniteTrainingError, match="reward of environment 1"):
        check_step([("policy", good)], torch.tensor([0.0, float("inf")]))


def test_losses_come_before_gradients_and_gradients_before_weights():
    model = torch.nn.Linear(2, 2)
    models = {"actor": model}
    check_update({"value": 0.0}, models)
    with torch.no_grad():
        model.bias[0] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match=r"weight of 'actor\.bias': 1 of 2"):
        check_update({"value": 0.0}, models)
    model.weight.grad = torch.full((2, 2), float("inf"))
    with pytest.raises(NonFiniteTrainingError, match=r"gradient of 'actor\.weight': 4 of 4"):
        check_update({"value": 0.0}, models)
    with pytest.raises(NonFiniteTrainingError, match="loss 'value' is nan"):
        check_update({"value": float("nan")}, models)
