"""``prism doctor`` on Warp's CPU back end: the report, and what it says when something is wrong."""

import pytest

from prism_motor.cli import main
from prism_motor.locomotion import doctor


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(doctor, "_SECONDS", 0.0)
    monkeypatch.setattr(doctor, "_STEPS", 5)


def test_the_report_has_everything_for_an_issue(capsys):
    main(["doctor", "--device", "cpu", "--envs", "16"])
    told = capsys.readouterr().out
    for text in ("mujoco-warp: ", "warp-lang: ", "speed with 16 robots of laptop: engine "):
        assert text in told
    lines = [line for line in told.splitlines() if line.startswith("ok ")]
    for robot in doctor.ROBOTS:
        assert any(f"control steps of {robot} are MuJoCo's: positions" in line for line in lines)
    exact = [line for line in lines if line.endswith("bit for bit")]
    assert len(exact) == 3
    assert "WRONG" not in told


def test_what_is_not_as_promised_fails(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "ROBOTS", {"g1": (0.001, 10)})
    monkeypatch.setattr(doctor, "LIMITS", (0.0, 0.0, 0.0))
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "--device", "cpu", "--envs", "16"])
    assert caught.value.code == 1
    told = capsys.readouterr().out
    assert "WRONG  control steps of g1 are MuJoCo's" in told
    assert "1 check did not turn out as promised: please open an issue" in told


@pytest.mark.parametrize(("device", "ok"), [("cpu", False), ("cuda:0", None)])
def test_exact_resume_is_promised_on_the_cpu_alone(device, ok):
    assert doctor._exact("resume", 0.0, device).ok is True
    finding = doctor._exact("resume", 1e-3, device)
    assert (finding.ok, finding.result) == (ok, "no, they differ by up to 1.0e-03")
