"""One table of arms for all domains."""

import re

from prism_motor.arms import REFERENCE, SPARE_COLOURS, STYLES, arm_colours, arm_order
from prism_motor.domains import DOMAINS


def test_every_arm_of_our_own_domains_is_in_the_table():
    for name in ("locomotion", "manipulation"):
        domain = DOMAINS[name]
        assert set(domain.arms) <= STYLES.keys(), name
        assert domain.reference == REFERENCE
        assert REFERENCE in domain.arms
        assert set(domain.arm_aliases.values()) <= set(domain.arms)
        assert not domain.arm_aliases.keys() & set(domain.arms)
        assert [domain.arm_name(arm) for arm in domain.arms] == list(domain.arms)


def test_former_names_mean_different_arms_in_different_domains():
    assert DOMAINS["locomotion"].arm_name("mlp-larger") == "mlp-matched"
    assert DOMAINS["manipulation"].arm_name("mlp-larger") == "mlp-large"
    assert DOMAINS["locomotion"].arm_name("mlp") == "mlp"
    assert DOMAINS["manipulation"].arm_name("mlp") == "mlp-matched"
    assert DOMAINS["locomotion"].arm_name("mine") == "mine"


def test_known_arms_come_first_and_others_by_name():
    names = ["zebra", "prism", "ant", "mlp", "mlp-matched"]
    assert sorted(names, key=arm_order) == ["mlp", "mlp-matched", "prism", "ant", "zebra"]


def test_known_arms_have_the_same_colour_everywhere_and_others_differ():
    colours = arm_colours(["cubic", "prism", "linear", "quartic", "cubic"])
    assert list(colours) == ["cubic", "prism", "linear", "quartic"]
    assert colours["prism"] == STYLES["prism"].colour
    assert (colours["cubic"], colours["quartic"]) == SPARE_COLOURS[:2]
    together = [style.colour for name, style in STYLES.items() if name != "linear"]
    assert len(set(together)) == len(together)
    assert not set(together) & set(SPARE_COLOURS)
    assert all(re.fullmatch("#[0-9A-F]{6}", style.colour) for style in STYLES.values())
