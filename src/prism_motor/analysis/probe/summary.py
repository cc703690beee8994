"""Results of probes: scores by arm, relative gains, and what leakage would have done."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from prism_motor.analysis.probe.fit import SCORES, Scored, gain, score
from prism_motor.analysis.probe.probes import ANY_ARM, UNTRAINED, Probe, ProbeSet
from prism_motor.analysis.subjects import ArmMean, mean_over_seeds

_ORDER = ("raw", "first_order", "polynomial", "latent", "conditioner", "hidden")
"""Features in order from the input: ``latent`` layers are inside an MLP conditioner, ``hidden``
ones after it."""


def summarise(scores: Sequence[Scored]) -> ArmMean:
    """Average the policies of an arm; the interval of a single one is over units."""
    return mean_over_seeds([one.value for one in scores], lambda: (scores[0].low, scores[0].high))


@dataclass(frozen=True)
class ProbeRow:
    """One feature of one arm, over all its policies."""

    arm: str
    """Name of the arm."""
    features: str
    """Name of the feature."""
    probes: tuple[Probe, ...]
    """One per training seed."""
    scores: dict[str, list[ArmMean]]
    """By name of the score, one per target."""


def collect_rows(found: ProbeSet) -> list[ProbeRow]:
    """Group the probes by arm and feature: arms as given, features from input to output."""
    groups: dict[tuple[str, str], list[Probe]] = {}
    for probe in found.probes:
        groups.setdefault((probe.arm, probe.features), []).append(probe)
    arms = list(dict.fromkeys(arm for arm, _ in groups))
    ordered = sorted(groups, key=lambda key: (arms.index(key[0]), feature_rank(key[1])))
    return [_row(*key, groups[key]) for key in ordered]


def feature_rank(name: str) -> tuple[int, str]:
    """Return where a feature stands on the way from input to output."""
    kind = name.rstrip("0123456789").rstrip("_")
    return (_ORDER.index(kind), name)


def _row(arm: str, features: str, probes: list[Probe]) -> ProbeRow:
    scores = {
        name: [
            summarise([score(probe.sums[:, i], name) for probe in probes])
            for i in range(probes[0].sums.shape[1])
        ]
        for name in SCORES
    }
    return ProbeRow(arm, features, tuple(probes), scores)


@dataclass(frozen=True)
class ProbeGain:
    """Relative change from one row to another, (score - base) / base, by target."""

    row: ProbeRow
    base: ProbeRow
    changes: dict[str, list[ArmMean]]
    """By name of the score, one per target."""

    @property
    def title(self) -> str:
        """What is compared with what."""
        if self.row.arm == self.base.arm:
            return f"{self.row.arm}: {self.row.features} vs {self.base.features}"
        return f"{self.row.arm} {self.row.features} vs {self.base.arm} {self.base.features}"


def collect_gains(rows: Sequence[ProbeRow], *, across: bool) -> list[ProbeGain]:
    """Compare polynomial with first-order latents, arms with the first, trained with untrained.

    Arms are compared by the trunk's input or first hidden layer, and by their last hidden layer.

    Args:
        rows: All rows.
        across: Whether arms were probed on the same windows, so that they can be compared.
    """
    by_arm: dict[str, dict[str, ProbeRow]] = {}
    for row in rows:
        by_arm.setdefault(row.arm, {})[row.features] = row
    arms = [arm for arm in by_arm if arm != ANY_ARM and not arm.endswith(UNTRAINED)]
    pairs: list[tuple[ProbeRow, ProbeRow]] = []
    for arm in arms:
        mine = by_arm[arm]
        if "polynomial" in mine:
            pairs.append((mine["polynomial"], mine["first_order"]))
        others = [arms[0]] if across and arm != arms[0] else []
        others += [arm + UNTRAINED] if arm + UNTRAINED in by_arm else []
        for other in others:
            base = by_arm[other]
            first = _first_stage(mine), _first_stage(base)
            last = mine[_last(mine)], base[_last(base)]
            same = first[0] is last[0] and first[1] is last[1]
            pairs += [first] if same else [first, last]
    return [_gain(*pair) for pair in pairs]


def _first_stage(features: dict[str, ProbeRow]) -> ProbeRow:
    return features["conditioner" if "conditioner" in features else "hidden_1"]


def _last(features: dict[str, ProbeRow]) -> str:
    return max(features, key=feature_rank)


def _gain(row: ProbeRow, base: ProbeRow) -> ProbeGain:
    pairs = _pair(row.probes, base.probes)
    changes = {
        name: [
            summarise([gain(one.sums[:, i], two.sums[:, i], name) for one, two in pairs])
            for i in range(row.probes[0].sums.shape[1])
        ]
        for name in SCORES
    }
    return ProbeGain(row, base, changes)


def _pair(ours: Sequence[Probe], theirs: Sequence[Probe]) -> list[tuple[Probe, Probe]]:
    """Pair policies by training seed, or in order if they share no seed."""
    other = {probe.training_seed: probe for probe in theirs}
    pairs = [(p, other[p.training_seed]) for p in ours if p.training_seed in other]
    return pairs or list(zip(ours, theirs, strict=False))


@dataclass(frozen=True)
class Leakage:
    """How much better probes would look if windows were split at random."""

    unit: str
    """What is held out as a whole here."""
    median: float
    """Median over all probes and targets of the relative change of the error."""
    largest: float
    """The largest in magnitude."""
    clear: int
    """Probes and targets whose error would be lower, with an interval below zero."""
    count: int
    """Probes and targets in total."""

    def __str__(self) -> str:
        return (
            f"Leakage: with windows split at random, windows of one {self.unit} sit on both sides "
            f"and errors look {-100 * self.median:.1f} % lower (median; up to "
            f"{-100 * self.largest:.1f} %; clearly lower in {self.clear} of {self.count}). Here no "
            f"{self.unit} is on both sides."
        )


def measure_leakage(found: ProbeSet) -> Leakage:
    """Compare the errors with those of a random split of the same windows."""
    changes = [
        gain(probe.leaky_sums[:, i], probe.sums[:, i], "mse")
        for probe in found.probes
        for i in range(len(found.scope.targets))
    ]
    return Leakage(
        unit=found.scope.unit,
        median=statistics.median(change.value for change in changes),
        largest=min(change.value for change in changes),
        clear=sum(change.high < 0 for change in changes),
        count=len(changes),
    )
