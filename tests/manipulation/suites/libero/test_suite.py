import pytest

from prism_motor.manipulation.suites.libero.preparation import NotPreparedError
from prism_motor.manipulation.tasks import find_task, list_tasks, make_environment

pytest.importorskip("libero", reason="hf-libero is not installed")

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")


def test_tasks_are_those_of_the_benchmark(libero):
    from prism_motor.manipulation.suites.libero.package import import_libero

    benchmark = import_libero("libero.libero.benchmark")
    for suite in SUITES:
        theirs = benchmark.get_benchmark(suite)().tasks
        ours = list_tasks(suite)
        assert [task.name for task in ours] == [task.name for task in theirs]
        assert [task.instruction for task in ours] == [task.language for task in theirs]


def test_wrong_names_are_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="Did you mean 'libero_spatial'"):
        list_tasks("libero_spatail")
    with pytest.raises(ValueError, match="Did you mean 'turn_on_the_stove'"):
        find_task("libero_goal", "turn_on_stove")
    with pytest.raises(ValueError, match="tasks 0 to 9, got 10"):
        find_task("libero_goal", 10)


def test_without_assets_the_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_LIBERO_CACHE", str(tmp_path))
    monkeypatch.setenv("LIBERO_CONFIG_PATH", str(tmp_path))
    with pytest.raises(NotPreparedError, match="Run: prism libero prepare"):
        make_environment(find_task("libero_goal", 0))
