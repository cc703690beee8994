"""Campaign files of every shape: what they would write is in their folder, or they are refused."""

import copy
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_motor._checks import PrismError
from prism_motor.campaigns.files import find_campaign, library
from prism_motor.campaigns.ledger import Ledger

from .sizes import fuzz
from .values import VALUES

CAMPAIGN = {
    "kind": "locomotion",
    "name": "small",
    "preset": "laptop",
    "description": "",
    "plugins": [],
    "seeds": [1, 2],
    "updates": 4,
    "overrides": {"envs": 8, "ppo": {"steps": 6}, "task": {"terminations": {"duration": 0.5}}},
    "evaluation": {"conditions": ["nominal"], "seeds": [101], "envs": 2, "episodes": 1},
    "variants": [{"name": "a", "overrides": {"envs": 4}}, {"name": "b", "like": "a"}],
    "arms": [
        {"name": "mlp", "arm": "mlp"},
        {"name": "prism", "overrides": {"actor": {"latent": 8}}, "sweep": {"ppo.clip": [0.1, 0.2]}},
    ],
    "tuning": {
        "seeds": [901],
        "fraction": 0.5,
        "sweep": {"ppo.learning_rate.times": [0.5, 1.0]},
    },
}
HANDLING = {
    "kind": "manipulation",
    "name": "small",
    "seeds": [1],
    "updates": 4,
    "preparation": {"episodes": 2, "seed": 1, "noise": 0.0},
    "evaluation": {"episodes": 1, "corrector": "none", "stiffness": 50.0},
    "tasks": [{"name": "reach", "suite": "metaworld", "task": "reach-v3"}],
    "arms": [{"name": "linear"}, {"name": "prism", "overrides": {"conditioner": {"latent": 8}}}],
}


def places(value, path=()):
    """The paths of all values in nested tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def mutate(data, path, how, value):
    data = copy.deepcopy(data)
    *groups, last = path
    table = data
    for group in groups:
        table = table[group]
    if how == "delete":
        del table[last]
    elif how == "rename" and isinstance(table, dict):
        table[str(value)] = table.pop(last)
    else:
        table[last] = value
    return data


def plan_inside(folder, given=None):
    """Plan all work of a campaign; everything it would write is in its folder."""
    try:
        campaign, _ = find_campaign(str(given or folder))
        ledger = Ledger(campaign, folder)
    except PrismError:
        return False
    for work in ledger:
        paths = [work.path, work.log, *([work.plan_file] if hasattr(work, "plan_file") else [])]
        for path in paths:
            inside = os.path.relpath(os.path.normpath(path), folder)
            assert not inside.startswith(".."), path
            assert all(len(part) < 250 for part in path.parts)
            assert not set(str(path)) & set('\0\n*?"<>|')
    assert len({work.path for work in ledger}) == len(ledger)
    return True


MUTATIONS = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from(["delete", "rename", "set", "set"]), VALUES),
    min_size=1,
    max_size=2,
)


def check_campaign(which, mutations):
    """Plan a mutated campaign of :data:`CAMPAIGN` (0) or :data:`HANDLING` (1)."""
    data = (CAMPAIGN, HANDLING)[which]
    for number, how, value in mutations:
        known = [*places(data)]
        if known:
            data = mutate(data, known[number % len(known)], how, value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "campaign.json").write_text(json.dumps(data))
        return plan_inside(folder)


@pytest.mark.parametrize("which", [0, 1])
def test_campaigns_plan_inside_their_folder_or_are_refused(which):
    assert check_campaign(which, [])

    @fuzz(100, 3000)
    @given(MUTATIONS)
    def check(mutations):
        check_campaign(which, mutations)

    check()


def check_toml(name, number, text):
    """Plan a campaign of the library with one line replaced."""
    lines = library()[name].splitlines()
    place = number % len(lines)
    key, equals, _ = lines[place].partition("=")
    lines[place] = f"{key}{equals}{text}" if equals else text
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / "mutated.toml"
        file.write_text("\n".join(lines), encoding="utf-8")
        return plan_inside(Path(folder).resolve(), file)


GARBAGE = st.one_of(
    st.sampled_from([
        "", "1", "-1", "nan", "inf", "1e400", "9" * 5000, "true", '""', '"../../x"', '"."', "[]",
        "[[]]", "{}", '["g1", "../../x"]', '["a", "a"]', "[1, 2.5]", "{x = 1}", "[" * 2000, "= =",
        "1979-05-27T07:32:00Z", "07:32:00", "[arms]", "[[arms]]", "[tuning]", "[[tuning.sweep]]",
        '{"a/b" = [1, 2]}', "[1979-05-27]",
    ]),
    st.text(max_size=10),
)  # fmt: skip


def test_toml_plans_inside_its_folder_or_is_refused():
    names = sorted(library())

    @fuzz(40, 1000)
    @given(st.sampled_from(names), st.integers(0, 1000), GARBAGE)
    def check(name, number, text):
        check_toml(name, number, text)

    check()


def test_a_sweep_cannot_leave_the_folder(tmp_path):
    data = copy.deepcopy(CAMPAIGN)
    data["tuning"]["sweep"] = {"task.robot": ["g1", "../../x"]}
    (tmp_path / "campaign.json").write_text(json.dumps(data))
    with pytest.raises(PrismError, match="part of a folder's name"):
        find_campaign(str(tmp_path))
