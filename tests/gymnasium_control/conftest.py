import pytest

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed (extra 'sb3')")
pytest.importorskip("mujoco", reason="mujoco is not installed (extra 'gymnasium')")
