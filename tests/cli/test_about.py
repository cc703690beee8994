"""``prism info`` and ``prism params``."""

import dataclasses
import json
from importlib import metadata

import pytest
import torch

from prism_motor.cli import main
from prism_motor.networks import NETWORKS


def test_params_counts_every_network_to_the_last_parameter(capsys):
    main(["params", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [network.name for network in NETWORKS]
    for row in rows:
        assert row["parameters"] == row["expected"], row["name"]


def test_params_totals_are_the_papers():
    counts = {network.name: network.count() for network in NETWORKS}
    std = 12
    totals = {
        name: counts[f"g1/{name}"] + counts["g1/critic"] + std
        for name in (
            "mlp", "mlp-large", "prism", "mlp-matched", "prism-r334", "mlp-wide", "mlp-deep",
            "prism-residual",
        )
    }  # fmt: skip
    assert totals == {
        "mlp": 926_105,
        "mlp-large": 1_320_953,
        "prism": 1_123_737,
        "mlp-matched": 1_123_793,
        "prism-r334": 1_320_576,
        "mlp-wide": 1_499_705,
        "mlp-deep": 1_500_569,
        "prism-residual": 1_320_857,
    }
    assert counts["smolvla/prism"] - counts["smolvla/linear"] == 1_878_720
    assert counts["smolvla/mlp-large"] - counts["smolvla/linear"] == 6_199_296
    filtered = counts["bfm-zero/deployed-mlp"] + counts["bfm-zero/prism"]
    assert filtered == counts["bfm-zero/deployed-prism"] == 32_665_245
    matched = counts["bfm-zero/deployed-mlp-matched"]
    assert abs(matched - filtered) < 1e-3 * counts["bfm-zero/prism"]


def test_params_table_is_readable(capsys):
    main(["params"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(NETWORKS) + 3
    assert lines[-1].startswith("expected: the exact count")
    assert any("g1/prism " in line and "724,876" in line and " ok" in line for line in lines)


def test_params_fails_loudly_on_a_wrong_count(monkeypatch, capsys):
    wrong = dataclasses.replace(NETWORKS[0], expected=1)
    monkeypatch.setattr("prism_motor.networks.NETWORKS", (wrong,))
    with pytest.raises(SystemExit) as caught:
        main(["params"])
    assert caught.value.code == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_info_reports_versions_devices_and_threads(capsys):
    main(["info", "--json"])
    sections = json.loads(capsys.readouterr().out)
    assert sections["versions"]["torch"] == torch.__version__
    assert sections["versions"]["tyro"] == metadata.version("tyro")
    assert sections["threads"]["torch threads"] == str(torch.get_num_threads())
    assert "cpu" in sections["devices"]
    main(["info"])
    assert torch.__version__ in capsys.readouterr().out
