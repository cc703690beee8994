"""Tests of the GPU engine, on the CPU back end of MuJoCo Warp; ``make test-gpu`` installs it."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _mujoco_warp():
    pytest.importorskip(
        "mujoco_warp", reason="the gpu engine's package, mujoco_warp, is not installed (extra gpu)"
    )
