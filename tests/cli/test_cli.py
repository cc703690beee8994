import dataclasses
import json
import subprocess
import sys
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
    totals = {name: counts[f"g1/{name}"] + counts["g1/critic"] + std for name in (
        "mlp", "mlp-larger", "gated", "mlp-larger-gated", "gated-r334", "mlp-wide", "mlp-deep",
        "residual",
    )}  # fmt: skip
    assert totals == {
        "mlp": 926_105,
        "mlp-larger": 1_320_953,
        "gated": 1_123_737,
        "mlp-larger-gated": 1_123_793,
        "gated-r334": 1_320_576,
        "mlp-wide": 1_499_705,
        "mlp-deep": 1_500_569,
        "residual": 1_320_857,
    }
    assert counts["smolvla/prism"] - counts["smolvla/linear"] == 1_878_720
    assert counts["smolvla/mlp-larger"] - counts["smolvla/linear"] == 6_199_296
    assert 32_109_477 + counts["bfm-zero/prism"] == 32_665_245


def test_params_table_is_readable(capsys):
    main(["params"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(NETWORKS) + 1
    assert any("g1/gated " in line and "724,876" in line and " ok" in line for line in lines)


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


def test_unknown_subcommand_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["parms"])
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert "params" in output.err + output.out


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m prism_motor.cli params | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("network")
    assert result.stderr == ""


def test_without_tyro_the_command_names_the_extra():
    code = (
        "import sys; sys.modules['tyro'] = None; from prism_motor.cli import main; main(['info'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "prism-motor[cli]" in result.stderr
    assert "Traceback" not in result.stderr
