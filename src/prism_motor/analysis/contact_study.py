"""Contacts of trained policies: the same initial states for every arm, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from prism_motor._errors import InputError
from prism_motor.analysis.contact_records import SHOWN, Episode, Record, typical
from prism_motor.analysis.manipulators import Manipulator
from prism_motor.manipulation.compliance import compliance_label, find_compliance, make_corrector
from prism_motor.manipulation.contact import AFTER, diagnose
from prism_motor.manipulation.diffusion.policy import PolicyActor, check_fit
from prism_motor.manipulation.environment import Environment, HandlingActor, Image
from prism_motor.manipulation.rollout import run_episode
from prism_motor.nn.checks import check_size


@dataclass(frozen=True)
class ContactConfig:
    """How contacts are recorded."""

    episodes: int = 10
    """Fixed initial states of every policy, from the first on."""
    seed: int = 401
    """Seed of the noise of policies and of MCC."""
    linger: int = AFTER
    """Steps to go on after success, so that what follows a contact is seen."""
    compliance: tuple[str, ...] = ()
    """Baselines that are added around the policies of the first arm, by name."""
    stiffness: float | None = None
    """Kp of the arm's controller, for all arms; the suite's own by default."""

    def __post_init__(self) -> None:
        check_size("Contacts", "episodes", self.episodes)
        if self.seed < 0 or self.linger < 0:
            raise InputError(
                f"Contacts: seed and linger must not be negative, got {self.seed}, {self.linger}."
            )
        for name in self.compliance:
            find_compliance(name)


@dataclass(frozen=True)
class Contender:
    """Who acts: a policy, alone or with a compliance baseline around it."""

    manipulator: Manipulator
    """The policy."""
    compliance: str | None = None
    """Name of the baseline."""

    @property
    def arm(self) -> str:
        """What it is called."""
        arm = self.manipulator.arm
        return arm if self.compliance is None else f"{arm} + {compliance_label(self.compliance)}"


def make_contenders(manipulators: Sequence[Manipulator], config: ContactConfig) -> list[Contender]:
    """Return all policies, and those of the first arm once more with every baseline."""
    first = [one for one in manipulators if one.arm == manipulators[0].arm]
    return [Contender(one) for one in manipulators] + [
        Contender(one, name) for name in config.compliance for one in first
    ]


def record_contacts(
    contenders: Sequence[Contender],
    environment: Environment,
    config: ContactConfig,
    report: Callable[[], None] | None = None,
) -> list[Record]:
    """Run everyone from the same initial states.

    Args:
        contenders: Who acts.
        environment: The task of all of them.
        config: How.
        report: Called after every episode; one of every contender is repeated for its pictures.
    """
    for one in contenders:
        check_fit(one.manipulator.policy, environment)
    if config.episodes > environment.initial_states:
        raise InputError(
            f"{environment.task.key} has {environment.initial_states} fixed initial states, "
            f"so at most that many episodes; got {config.episodes}."
        )
    # All are made before the first acts: what cannot work is said before hours of episodes.
    recorders = [_Recorder(one, environment, config) for one in contenders]
    records = []
    for one, recorder in zip(contenders, recorders, strict=True):
        episodes = []
        for state in range(config.episodes):
            episodes.append(recorder.run(state))
            if report is not None:
                report()
        shown = typical(episodes)
        pictures = () if shown is None else recorder.pictures(shown)
        if report is not None:
            report()
        manipulator = one.manipulator
        about = {**manipulator.about, "compliance": one.compliance}
        records.append(Record(one.arm, manipulator.seed, about, tuple(episodes), pictures))
    return records


class _EnoughPictures(Exception):  # noqa: N818
    """Ends an episode that is only filmed."""


class _Recorder:
    """Runs episodes of one contender."""

    def __init__(
        self, contender: Contender, environment: Environment, config: ContactConfig
    ) -> None:
        self.environment, self.config = environment, config
        self.actor: HandlingActor = PolicyActor(contender.manipulator.policy)
        name = contender.compliance
        self.corrector = None if name is None else make_corrector(name, environment)

    def run(self, state: int, film: Callable[[Image], None] | None = None) -> Episode:
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
        return Episode(state, outcome, trace, diagnose(trace))

    def pictures(self, episode: Episode) -> tuple[Image, ...]:
        """Run an episode again, which repeats it exactly, and return what is shown of it."""
        assert episode.contact is not None
        # The first picture is of the start, so the state after step t is in picture t + 1.
        at = episode.contact.step + 1
        drawn: list[Image] = []

        def film(picture: Image) -> None:
            drawn.append(picture)
            if len(drawn) > at + SHOWN[-1]:
                raise _EnoughPictures

        with suppress(_EnoughPictures):
            self.run(episode.initial_state, film)
        return tuple(drawn[min(max(at + offset, 0), len(drawn) - 1)] for offset in SHOWN)
