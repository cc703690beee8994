"""From a trained run to a robot: the contract, the export and a runner that stands alone."""
