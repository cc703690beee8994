"""Tables that users can add to."""

import pytest

from prism_motor._registry import Registry, resolve


def test_entries_given_as_places_are_imported_when_asked_for():
    table = Registry("thing", {"loads": "json:loads", "lost": "json:nowhere", "gone": "no_such:x"})
    assert list(table) == ["loads", "lost", "gone"]
    assert len(table) == 3
    assert "gone" in table
    import json

    assert table["loads"] is json.loads
    with pytest.raises(ModuleNotFoundError):
        table["gone"]


def test_an_unknown_name_suggests_the_nearest_and_a_plugin():
    table = Registry("robot", {"quadruped": 1, "biped": 2})
    with pytest.raises(ValueError, match=r"Unknown robot 'quadrupet'.*'quadruped'\?.*--plugin"):
        table["quadrupet"]


def test_one_can_add_but_not_replace():
    table = Registry("robot", {"biped": object()})
    mine = object()
    assert table.register("mine", mine) is mine
    assert table["mine"] is mine
    table.register("mine", mine)
    with pytest.raises(ValueError, match="a built-in robot called 'biped'"):
        table.register("biped", object())


def test_two_pieces_of_code_cannot_share_a_name_and_names_are_plain():
    table = Registry("reward")
    table.register("mine", resolve)
    with pytest.raises(
        ValueError, match="reward called 'mine' is already registered by other code"
    ):
        table.register("mine", pytest.raises)
    for name in ("", "my reward", "../x", "-x"):
        with pytest.raises(ValueError, match="cannot be the name of a reward"):
            table.register(name, print)


def test_a_module_that_is_imported_twice_may_register_twice():
    def make():
        class Robot:
            pass

        return Robot

    table = Registry("robot")
    table.register("mine", make())
    again = make()
    table.register("mine", again)
    assert table["mine"] is again


def test_places_say_how_they_are_written():
    assert resolve("os.path:join")("a", "b") == "a/b"
    with pytest.raises(ValueError, match=r"Expected module:NAME, e\.g\. .*got 'os\.path'"):
        resolve("os.path")
