"""``prism contact``: force and speed of trained policies around their first contact.

All start from the same fixed initial states of their task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor._ranges import Seed, above, between
from prism_motor.analysis.contact_episodes import (
    SHOWN,
    ContactEpisode,
    ContactRecord,
    aligned,
    measure,
    mechanics,
    shared_episodes,
    typical,
)
from prism_motor.analysis.contact_figure import draw_contacts, draw_mechanics
from prism_motor.analysis.study import Finding, Report, ResultTable, Study, StudyConfig, silent
from prism_motor.analysis.subjects import Subject, by_arm, load_same_task
from prism_motor.manipulation.compliance import compliance_label, find_compliance, make_corrector
from prism_motor.manipulation.contact import AFTER, BEFORE, THRESHOLD, diagnose
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.policy import check_fit
from prism_motor.manipulation.rollout import run_episode
from prism_motor.statistics import wilson

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment, HandlingActor, Image
    from prism_motor.manipulation.tasks import Task

_COLUMNS = {
    "window_peak_force": (f"peak force, {AFTER} steps, N", 1),
    "peak_force": ("peak force, N", 1),
    "impulse": ("impulse, N s", 1),
    "work": ("work, J", 2),
    "mean_power": ("contact power, W", 2),
    "approach_speed": ("speed before, m/s", 3),
    "yielding_speed": ("speed after, m/s", 3),
}
"""Numbers in the tables: title and digits."""


@dataclass(frozen=True)
class ContactConfig(StudyConfig, section="contact"):
    """How contacts are recorded."""

    compliance: tuple[str, ...] = ()
    """Also run the first arm with these baselines: mcc-sensorless, mcc-oracle, or a compliance.json
    of prism compliance."""
    episodes: Annotated[int, between(1, 100_000)] = 10
    """Fixed initial states per policy, from the first on."""
    linger: Annotated[int, between(0, 100_000)] = AFTER
    """Control steps to continue after success, so that what follows a contact is seen."""
    seed: Seed = 401
    """Seed of the noise of policies and of the baselines."""
    stiffness: Annotated[float | None, above(0, 1e5)] = None
    """Kp of LIBERO's controller for all arms; the paper uses 50. Default: LIBERO's own, 150."""
    task: str = ""
    """Which task of policies that learned several, as SUITE/NUMBER; default: the first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.compliance:
            find_compliance(name)


@dataclass(frozen=True)
class ContactContender:
    """What acts: a policy, with or without a compliance baseline around it."""

    subject: Subject
    """The policy."""
    compliance: str | None = None
    """Name of the baseline."""

    @property
    def arm(self) -> str:
        """Name of the arm."""
        arm = self.subject.arm
        return arm if self.compliance is None else f"{arm} + {compliance_label(self.compliance)}"


def make_contenders(subjects: Sequence[Subject], config: ContactConfig) -> list[ContactContender]:
    """Return all policies, and those of the first arm again with every baseline."""
    first = [one for one in subjects if one.arm == subjects[0].arm]
    return [ContactContender(one) for one in subjects] + [
        ContactContender(one, name) for name in config.compliance for one in first
    ]


def record_contacts(
    contenders: Sequence[ContactContender],
    environment: Environment,
    config: ContactConfig,
    report: Report = silent,
) -> list[ContactRecord]:
    """Run all contenders from the same initial states.

    Args:
        contenders: What acts.
        environment: The task of all of them.
        config: Settings.
        report: Called after every episode; one per contender is repeated for its images.
    """
    for one in contenders:
        check_fit(one.subject.policy, environment)
    if config.episodes > environment.initial_states:
        raise InputError(
            f"{environment.task.key} has {environment.initial_states} fixed initial states, "
            f"so at most that many episodes; got {config.episodes}."
        )
    # Make all actors first: what cannot work fails before hours of episodes.
    recorders = [_Recorder(one, environment, config) for one in contenders]
    records = []
    for one, recorder in zip(contenders, recorders, strict=True):
        episodes = []
        for state in range(config.episodes):
            episodes.append(recorder.run(state))
            report()
        shown = typical(episodes)
        images = () if shown is None else recorder.images(shown)
        report()
        subject = one.subject
        about = {**subject.about, "compliance": one.compliance}
        records.append(ContactRecord(one.arm, subject.seed, about, tuple(episodes), images))
    return records


class _EnoughImages(Exception):  # noqa: N818
    """Ends an episode that is only filmed."""


class _Recorder:
    """Runs episodes of one contender."""

    def __init__(
        self, contender: ContactContender, environment: Environment, config: ContactConfig
    ) -> None:
        self.environment, self.config = environment, config
        self.actor: HandlingActor = contender.subject.policy.acting_on(environment.task)
        name = contender.compliance
        self.corrector = None if name is None else make_corrector(name, environment)

    def run(self, state: int, film: Callable[[Image], None] | None = None) -> ContactEpisode:
        """Run one episode."""
        outcome, trace = run_episode(
            self.environment,
            self.actor,
            initial_state=state,
            seed=1000 * self.config.seed + state,
            corrector=self.corrector,
            linger=self.config.linger,
            on_frame=film,
        )
        return ContactEpisode(state, outcome, trace, diagnose(trace))

    def images(self, episode: ContactEpisode) -> tuple[Image, ...]:
        """Repeat an episode exactly and return the images that are shown of it."""
        assert episode.contact is not None
        # The first image is of the start, so the state after step t is in image t + 1.
        at = episode.contact.step + 1
        drawn: list[Image] = []

        def film(image: Image) -> None:
            drawn.append(image)
            if len(drawn) > at + SHOWN[-1]:
                raise _EnoughImages

        with suppress(_EnoughImages):
            self.run(episode.initial_state, film)
        return tuple(drawn[min(max(at + offset, 0), len(drawn) - 1)] for offset in SHOWN)


def make_table(records: Sequence[ContactRecord], *, successful: bool) -> ResultTable:
    """Return the numbers by arm, of all episodes with contact or only of the successful ones."""
    rows = []
    for arm, group in by_arm(records).items():
        episodes = [one for record in group for one in record.episodes]
        solved = sum(one.outcome.success for one in episodes)
        counted = [one for one in episodes if one.outcome.success or not successful]
        touched = sum(one.contact is not None for one in counted)
        rate = wilson(solved, len(episodes))
        success = (
            f"{100 * solved / len(episodes):.0f} [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
        )
        cells = []
        for name, (_, digits) in _COLUMNS.items():
            found = measure(group, name, successful=successful)
            cells.append("–" if found is None else found.write(digits))
        rows.append([arm, str(len(group)), success, f"{touched} of {len(counted)}", *cells])
    titles = [title for title, _ in _COLUMNS.values()]
    return ResultTable(["arm", "policies", "success, %", "with contact", *titles], rows)


def _caption(records: Sequence[ContactRecord], task: Task, config: ContactConfig) -> str:
    """Explain the numbers."""
    seeds = max(len(group) for group in by_arm(records).values())
    spread = (
        f"± is the SD over up to {seeds} training seeds"
        if seeds > 1
        else "brackets are 95 % bootstrap intervals over episodes of one policy per arm, so "
        "nothing here says how training seeds differ"
    )
    dt = records[0].episodes[0].trace.control_seconds
    soft = "" if config.stiffness is None else f" with Kp {config.stiffness:g} for all arms"
    return (
        f"{task.key}, “{task.instruction}”, {config.episodes} fixed initial states per "
        f"policy{soft}. Force is the largest on any one body of the hand; first contact is the "
        f"first step with {THRESHOLD:g} N or more. Impulse (sum F dt), work (sum F |dx|), contact "
        f"power (mean F "
        f"|v|) and peak force run from there to {config.linger} steps after success, or to the "
        f"horizon; the peak over {AFTER} steps and the speeds over {BEFORE} steps before and "
        f"{AFTER} after ({BEFORE * dt:g} s) do not depend on how long an episode lasts. Work and "
        f"power use norms, so they are upper bounds. Means over episodes with contact; {spread}."
    )


def _record(record: ContactRecord) -> dict[str, Any]:
    return {
        **record.about,
        "arm": record.arm,
        "episodes": [_episode(one) for one in record.episodes],
        "aligned": {
            "time": [
                round(step * record.episodes[0].trace.control_seconds, 6)
                for step in range(-BEFORE, AFTER + 1)
            ],
            "force": _plain(aligned([record], "largest_force")),
            "speed": _plain(aligned([record], "speed")),
        },
    }


def _episode(one: ContactEpisode) -> dict[str, Any]:
    contact = None if one.contact is None else asdict(one.contact)
    return {"initial_state": one.initial_state, **asdict(one.outcome), "contact": contact}


def _mechanics(arm: str, episode: ContactEpisode) -> dict[str, Any]:
    """Return a whole episode step by step."""
    trace, contact = episode.trace, episode.contact
    impulse, power = mechanics(trace)
    signals = {
        "time": trace.time,
        "force": trace.largest_force,
        "speed": trace.speed,
        "impulse": impulse,
        "power": power,
    }
    return {
        "arm": arm,
        "initial_state": episode.initial_state,
        "success": episode.outcome.success,
        "first_contact": None if contact is None else contact.time,
        **{name: _plain(values[None])[0] for name, values in signals.items()},
    }


def _plain(values: np.ndarray) -> list[list[float | None]]:
    """Return numbers for JSON, short, with ``None`` outside an episode."""
    return [[round(float(v), 4) if np.isfinite(v) else None for v in row] for row in values]


def _count(subjects: Sequence[Subject], config: ContactConfig) -> int:
    return len(make_contenders(subjects, config)) * (config.episodes + 1)


def _run(subjects: Sequence[Subject], config: ContactConfig, report: Report) -> Finding:
    environment = environment_of(subjects[0].policy.config, config.stiffness, config.task)
    try:
        contenders = make_contenders(subjects, config)
        records = record_contacts(contenders, environment, config, report)
    finally:
        environment.close()
    return make_finding(records, environment.task, config)


def make_finding(records: Sequence[ContactRecord], task: Task, config: ContactConfig) -> Finding:
    """Return everything that is shown and stored about recorded contacts.

    Args:
        records: One per policy.
        task: What they did.
        config: How they were recorded.
    """
    shared = shared_episodes(records)
    state = next(iter(shared.values())).initial_state
    every, solved = (make_table(records, successful=alone) for alone in (False, True))
    title = f"“{task.instruction}”: force and speed at first contact"
    return Finding(
        title="Force and speed at first contact",
        caption=_caption(records, task, config),
        tables={"": every, "successful": solved},
        screen={"all episodes": every, "successful episodes": solved},
        data={
            "task": asdict(task),
            "threshold": THRESHOLD,
            "runs": [_record(record) for record in records],
            "mechanics": [_mechanics(arm, episode) for arm, episode in shared.items()],
        },
        figures={
            "contact": lambda: draw_contacts(records, title),
            "mechanics": lambda: draw_mechanics(
                shared, f"“{task.instruction}” from initial state {state}"
            ),
        },
    )


CONTACT = Study(
    name="contact",
    domain="manipulation",
    help="""Compare what policies do when they touch something: force, speed, impulse, work, power.

All start from the same fixed initial states of their task. Writes contact.json, contact.png and
mechanics.png.""",
    config=ContactConfig,
    load=load_same_task,
    count=_count,
    run=_run,
)
"""``prism contact``."""
