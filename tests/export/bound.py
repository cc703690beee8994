"""Contracts of our own choice in an export, bound as if they had been exported like that."""

import json

import onnx

from prism_motor.export import runner


def write_contract(folder, contract):
    """Write a contract, into the policy as well, and bind the files to it."""
    policy, model = folder / runner.POLICY, folder / runner.MODEL
    network = onnx.load(policy)
    unbound = {key: value for key, value in contract.items() if key != "binding"}
    onnx.helper.set_model_props(network, {"contract": json.dumps(unbound)})
    onnx.save(network, policy)
    bound = runner.bind(contract, policy.read_bytes(), model.read_bytes())
    (folder / runner.CONTRACT).write_text(json.dumps(bound))


def read_contract(folder):
    """Read a contract without any checks."""
    return json.loads((folder / runner.CONTRACT).read_text())
