"""The tables and sentences of a pilot's report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from prism_motor._console import count
from prism_motor.pilots.plan import PilotPlan, SealedPart
from prism_motor.pilots.records import FAILURES, Trial
from prism_motor.pilots.results import ArmComparison, ArmResult, PilotResults
from prism_motor.report.tables import Cell, Table, blank
from prism_motor.statistics import Interval, write_p
from prism_motor.statistics.claims import LEVEL

TESTS = {"mcnemar": "exact McNemar", "boschloo": "Boschloo"}
"""Titles of the primary tests."""


def make_findings(plan: PilotPlan, results: PilotResults) -> list[tuple[str, str]]:
    """Return what the pilot found, as pairs of a subject and a sentence."""
    test = plan.config.test
    found = []
    for one in results.comparisons:
        arm, reference = results.arm(one.arm), results.arm(one.reference)
        different = one.primary < LEVEL
        verdict = (
            f"{'more' if one.difference > 0 else 'less'} often than {reference.name}"
            if different
            else f"these trials cannot tell it from {reference.name}"
        )
        low, high = (_points(bound) for bound in one.interval)
        several = ", Holm" if len(results.comparisons) > 1 else ""
        sentence = (f" succeeded {verdict}: " if different else f": {verdict}: ") + (
            f"{arm.tally.successes} of {arm.tally.trials} against {reference.tally.successes} of "
            f"{reference.tally.trials}, difference {_points(one.difference)} points [{low}, "
            f"{high}], p = {write_p(one.primary)} ({TESTS[test]}, the planned test{several})."
        )
        if test == "mcnemar":
            sentence += (
                f" At {count(one.pairs.first, 'start pose')} only {arm.name} succeeded, at "
                f"{one.pairs.second} only {reference.name}."
            )
        found.append((arm.name, sentence))
    found.append(("What this means", f": {_meaning(plan)}"))
    if results.counted < results.planned:
        found.append(
            (
                "Unfinished",
                f": {results.counted} of {results.planned} planned trials have a label, and the "
                "arms are revealed. The tests were planned for all of them.",
            )
        )
    return found


def _meaning(plan: PilotPlan) -> str:
    """Say what the trials speak of."""
    if plan.policies == 1:
        return (
            "this compares checkpoints, not methods. Every arm is one training run; another run of "
            "the same method may do better or worse than this one."
        )
    return (
        f"this compares checkpoints, not methods. Every arm is {plan.policies} training runs, "
        "which are strata: the tests pool their trials and speak of these runs; the table by "
        "training run shows how much they differ."
    )


def make_tables(
    plan: PilotPlan, sealed: SealedPart, results: PilotResults, trials: Sequence[Trial]
) -> list[Table]:
    """Return all tables in order."""
    tables = [_success_table(results), _comparison_table(plan, results)]
    if plan.policies > 1:
        tables.append(_policy_table(plan, results))
    tables += [_failure_table(results), _loop_table(plan, results)]
    if results.agreements:
        tables.append(_agreement_table(results))
    if void := [one for one in trials if one.label and one.label.outcome == "void"]:
        tables.append(_void_table(void, sealed))
    return [*tables, _power_table(plan), _trial_table(trials, sealed)]


def plan_rows(plan: PilotPlan) -> list[tuple[str, str]]:
    """Return what was planned, as names and values."""
    config, robot, made = plan.config, plan.robot, plan.provenance
    versions = [f"prism {made['prism']}", f"LeRobot {made['packages']['lerobot']}"]
    rows = [
        ("Success", config.criterion),
        ("Trials", f"{config.trials} of each arm, up to {config.limit:g} s, at {plan.fps} Hz"),
        ("Primary test", f"{TESTS[config.test]}, two-sided, level {LEVEL:g}"),
        ("Robot", " ".join(robot.flags)),
        ("Calibration", (robot.calibration or "none")[:16]),
        ("Seed", str(config.seed)),
        ("Sealed", f"{made['created']} by {', '.join(versions)}"),
    ]
    if made.get("commit"):
        changed = " with uncommitted changes" if made.get("uncommitted_changes") else ""
        rows.append(("Commit", f"{made['commit'][:12]}{changed}"))
    return rows


def _success_table(results: PilotResults) -> Table:
    rows = []
    for arm in results.arms:
        times = arm.success_times
        time = (
            Cell(f"{statistics.median(times):.1f}", f"{min(times):.1f} to {max(times):.1f}")
            if (times)
            else blank()
        )
        rows.append(
            (
                Cell(arm.name, f"arm {arm.letter}"),
                Cell(f"{arm.tally.successes}/{arm.tally.trials}"),
                _rate(arm, arm.wilson),
                _rate(arm, arm.exact),
                time,
                Cell(str(arm.void)),
            )
        )
    return Table(
        "Successes",
        ("arm", "successes", "%, Wilson", "%, Clopper-Pearson", "s until success", "void"),
        tuple(rows),
        "95 % intervals over trials; they hold for these policies only. Time: median and range of "
        "the successes whose time is known. Void trials were repeated and count nowhere else.",
    )


def _rate(arm: ArmResult, interval: Interval | None) -> Cell:
    if interval is None:
        return blank()
    low, high = (f"{100 * bound:.0f}" for bound in interval)
    return Cell(f"{100 * arm.tally.rate:.0f}", f"[{low}, {high}]")


def _comparison_table(plan: PilotPlan, results: PilotResults) -> Table:
    def row(one: ArmComparison) -> tuple[Cell, ...]:
        low, high = (_points(bound) for bound in one.interval)
        kind = ""
        if one.primary < LEVEL:
            kind = "better" if one.difference > 0 else "worse"
        reference = results.arm(one.reference).name
        left = f"{one.incomplete} incomplete" if one.incomplete else ""
        pairs = f"{one.pairs.both} / {one.pairs.first} / {one.pairs.second} / {one.pairs.neither}"
        return (
            Cell(results.arm(one.arm).name, f"against {reference}"),
            Cell(_points(one.difference), f"[{low}, {high}]", kind),
            Cell(write_p(one.primary), TESTS[plan.config.test], kind),
            Cell(pairs, left),
            Cell(write_p(one.mcnemar)),
            Cell(write_p(one.boschloo)),
            Cell(write_p(one.fisher)),
        )

    columns = ("arm", "difference, points", "p, planned test", "both / arm / reference / neither")
    interval = "paired " if plan.config.test == "mcnemar" else ""
    note = (
        f"Difference of success rates with Newcombe's 95 % interval ({interval}score method). The "
        "planned test decides; the others are beside it for comparison, not to choose from. "
        "Fourth column: start poses at which both, only the arm, only the reference, or neither "
        "succeeded."
    )
    if len(results.comparisons) > 1:
        note += (
            f" The p of the planned test is adjusted by Holm for {len(results.comparisons)} "
            "comparisons; the others are not."
        )
    rows = tuple(map(row, results.comparisons))
    return Table("Comparison", (*columns, "McNemar", "Boschloo", "Fisher"), rows, note)


def _policy_table(plan: PilotPlan, results: PilotResults) -> Table:
    rows = tuple(
        (Cell(arm.name), *(Cell(f"{one.successes}/{one.trials}") for one in arm.policies))
        for arm in results.arms
    )
    columns = ("arm", *(f"run {index + 1}" for index in range(plan.policies)))
    note = "Training runs are strata: each start pose is tried with one run of every arm."
    return Table("By training run", columns, rows, note)


def _failure_table(results: PilotResults) -> Table:
    codes = [code for code in (*FAILURES, None) if any(code in a.failures for a in results.arms)]
    titles = {None: "not said", **{code: f"{code} {name}" for code, name in FAILURES.items()}}
    rows = tuple(
        (Cell(arm.name), *(Cell(str(arm.failures.get(code, 0))) for code in codes))
        for arm in results.arms
    )
    note = "" if codes else "No trial failed."
    return Table("Failures by kind", ("arm", *(titles[code] for code in codes)), rows, note)


def _loop_table(plan: PilotPlan, results: PilotResults) -> Table:
    rows = tuple(
        (
            Cell(arm.name),
            Cell(f"{statistics.median(arm.rates):.1f}") if arm.rates else blank(),
            Cell(f"{min(arm.rates):.1f}") if arm.rates else blank(),
            blank() if arm.worst is None else Cell(f"{1000 * arm.worst:.0f}"),
        )
        for arm in results.arms
    )
    return Table(
        "Control loop",
        ("arm", "Hz, median", "Hz, slowest trial", "ms, longest step"),
        rows,
        f"By the wall clock; planned: {plan.fps} Hz. A simulated robot does not wait for it.",
    )


def _agreement_table(results: PilotResults) -> Table:
    rows = tuple(
        (
            Cell(one.by),
            Cell(f"{one.agreed}/{one.compared}"),
            blank() if one.kappa is None else Cell(f"{one.kappa:.2f}".replace("-", "−")),
            Cell(str(one.unclear)),
            Cell(str(one.revealed)),
        )
        for one in results.agreements
    )
    return Table(
        "Second look",
        ("by", "agreed", "Cohen's kappa", "unclear", "after the arms were known"),
        rows,
        "Labels from the videos alone against the first labels. Kappa: 1 is full agreement, 0 that "
        "of chance; missing if all labels were the same. The first labels are those that count.",
    )


def _void_table(trials: Sequence[Trial], sealed: SealedPart) -> Table:
    rows = tuple(
        (Cell(str(one.number)), Cell(sealed.arm(one.arm).name), Cell(one.label.reason))
        for one in trials
        if one.label is not None
    )
    return Table("Void trials", ("trial", "arm", "reason"), rows)


def _power_table(plan: PilotPlan) -> Table:
    rows = tuple(
        (Cell(" and ".join(f"{100 * rate:g} %" for rate in one.rates)), Cell(f"{one.power:.2f}"))
        for one in plan.power
    )
    note = (
        f"Chance that {TESTS[plan.config.test]} finds a difference with {plan.config.trials} "
        "trials of each arm, as shown before the first trial."
    )
    if plan.config.test == "mcnemar":
        note += " The outcomes at a start pose are taken as independent."
    return Table("Power", ("true rates", "power"), rows, note, folded=True)


def _trial_table(trials: Sequence[Trial], sealed: SealedPart) -> Table:
    rows = []
    for one in trials:
        label, course = one.label, one.course
        told = "" if label is None else "; ".join(filter(None, (label.reason, label.note)))
        code = "" if label is None or label.code is None else FAILURES[label.code]
        clicks = "" if one.clicks is None else f"{count(len(one.clicks), 'click')}"
        rows.append(
            (
                Cell(str(one.number), f"repeats {one.repeats}" if one.repeats else ""),
                Cell(str(one.pose)),
                Cell(sealed.arm(one.arm).name, f"run {one.policy + 1}"),
                Cell("no label" if label is None else label.outcome, code),
                Cell("" if course is None else f"{course.seconds:.1f}"),
                Cell("" if course is None else course.stopped_by, clicks),
                Cell("" if label is None else label.by, told),
            )
        )
    columns = ("trial", "pose", "arm", "label", "s", "ended by", "labelled by")
    return Table("All trials", columns, tuple(rows), folded=True)


def _points(difference: float) -> str:
    return f"{100 * difference:+.0f}".replace("-", "−")
