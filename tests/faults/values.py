"""Values of every shape, and the settings of tiny runs that they are given to."""

import math
from functools import cache

from hypothesis import strategies as st

from prism_motor.domains import DOMAINS
from prism_motor.runs import to_dict
from prism_motor.runs.configs import flatten

SMALL = {
    "locomotion": {
        "envs": 2, "updates": 1, "threads": 1, "ppo.steps": 4, "ppo.minibatches": 1,
        "critic_hidden": [8], "actor.hidden": [8], "actor.latent": 4,
        "task.observations.actor_frames": 2, "task.terminations.duration": 1.0,
    },
    "manipulation": {"updates": 1, "threads": 1, "batch": 2, "network.widths": [16, 32]},
}  # fmt: skip

NUMBERS = [
    0, 1, -1, 2, 3, 7, 1000, 2**31, 2**63, 10**30, -(10**30), 10**400, True, False, 0.0, -0.0, 0.5,
    1.0, -0.5, 1e-300, 5e-324, 1e9, 1e20, 1e30, 1e308, -1e308, math.nan, math.inf, -math.inf,
]  # fmt: skip
TEXTS = [
    "", " ", "x", "0", "-1", "1e3", "nan", "g1", "prism", "../../x", "/x", "..", ".", "a/b", "a\\b",
    "con", "nul.txt", "x.py", "../x.py", "\0", "\n", "é", "²", "x" * 300, "%s{}", "<b>", "${HOME}",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.integers(), st.floats(),
    st.text(max_size=12),
)  # fmt: skip
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=4),
    st.sampled_from([[], [[]], {}, {"": 1}, [0] * 20_000, [{}], {"x": {}}, [[0, 0, math.nan]]]),
    st.dictionaries(st.sampled_from(["x", "", "torques", "a.b", "kind"]), SCALARS, max_size=2),
)


@cache
def base(kind):
    """Settings of a tiny run, and its dotted keys."""
    config = DOMAINS[kind].make_config(DOMAINS[kind].default_preset, "prism", overrides=SMALL[kind])
    tables = to_dict(config)
    sections = {".".join(key.split(".")[:i]) for key in flatten(tables) for i in (1, 2)}
    return config, sorted({*flatten(tables), *sections, "task.rewards.parameters", "nonsense"})
