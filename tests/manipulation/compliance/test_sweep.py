import json
from dataclasses import asdict, replace

import pytest

from prism_motor.manipulation.compliance import (
    COMPLIANCE,
    ComplianceGrid,
    ComplianceTrial,
    choose_trial,
    compliance_label,
    find_compliance,
)

BASE = COMPLIANCE["mcc-sensorless"]


def trial(successes, impulse, gain=0.01):
    return ComplianceTrial(replace(BASE, gain=gain), 10, successes, impulse)


def test_success_comes_first_then_the_impulse():
    assert choose_trial([trial(7, 1.0), trial(8, 90.0), trial(8, 20.0)]).impulse == 20.0
    assert choose_trial([trial(9, None), trial(9, 400.0)]).impulse == 400.0
    first, second = trial(5, 3.0, gain=0.1), trial(5, 3.0, gain=0.2)
    assert choose_trial([first, second]) is first
    with pytest.raises(ValueError, match="at least one"):
        choose_trial([])


def test_all_values_are_tried_with_all_others():
    found = ComplianceGrid(gain=(0.1, 0.2), smoothing=(0.5, 0.6, 0.7), clip=(0.05,)).candidates(
        BASE
    )
    assert len({(c.gain, c.smoothing) for c in found}) == len(found) == 6
    assert {(c.delay, c.noise, c.source) for c in found} == {(2, 0.15, "actuators")}
    assert BASE in ComplianceGrid().candidates(BASE)  # the paper's own choice is always among them


def test_what_was_chosen_can_be_used_as_a_baseline(tmp_path):
    file = tmp_path / "compliance.json"
    tuned = replace(BASE, gain=0.007)
    file.write_text(json.dumps({"chosen": asdict(tuned)}))
    assert find_compliance(str(file)) == tuned
    assert compliance_label(str(file)) == "mcc-sensorless-tuned"
    assert compliance_label("mcc-oracle") == "mcc-oracle"
    file.write_text(json.dumps({"chosen": {"gian": 1}}))
    with pytest.raises(ValueError, match="unknown key 'gian'"):
        find_compliance(str(file))
    with pytest.raises(ValueError, match="holds no settings of prism compliance"):
        find_compliance(str(tmp_path / "none.json"))
