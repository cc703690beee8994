"""A whole emulated SO-101: follower, and leader if wanted, with ports, pictures and calibration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prism_motor._checks import InputError
from prism_motor.integrations.feetech.bus import FeetechBus
from prism_motor.integrations.feetech.calibration import calibrate
from prism_motor.integrations.feetech.hand import ArmHand
from prism_motor.integrations.feetech.servos import HandledServos, Servos
from prism_motor.integrations.feetech.twin_servos import TwinServos, TwinServosConfig
from prism_motor.sim.so101.units import JOINTS


@dataclass
class EmulatedArms:
    """What LeRobot can connect to."""

    follower: FeetechBus
    """The arm that acts."""
    leader: FeetechBus | None = None
    """The arm that is held."""
    twin: TwinServos | None = None
    """What the follower moves; ``None``: its servos carry nothing."""
    hand: ArmHand = field(default_factory=ArmHand)
    """Who moves arms that carry nothing, while their motors are off."""

    @property
    def buses(self) -> list[FeetechBus]:
        """All buses."""
        return [self.follower] + ([self.leader] if self.leader is not None else [])


@contextmanager
def emulated_arms(
    folder: Path, config: TwinServosConfig | None = None, *, leader: bool = False
) -> Iterator[EmulatedArms]:
    """Offer an arm, or two, until the end of the block.

    Args:
        folder: For the ports ``follower`` and ``leader``, and for pictures.
        config: The twin; default: servos that carry nothing and that a hand can move.
        leader: Whether there is a leader arm, too. With a twin, a script holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hand = ArmHand()
    with ExitStack() as stack:
        stack.enter_context(_alone(folder))
        twin = TwinServos(config, folder, led=leader) if config is not None else None
        servos: Servos = twin or HandledServos(hand)
        follower = stack.enter_context(_bus(servos, folder / "follower"))
        arms = EmulatedArms(follower, twin=twin, hand=hand)
        if leader:
            held = HandledServos(twin.hand if twin is not None else hand)
            arms.leader = stack.enter_context(_bus(held, folder / "leader"))
        yield arms


def _bus(servos: Servos, link: Path) -> FeetechBus:
    bus = FeetechBus(JOINTS, servos, link=link)
    calibrate(bus)
    return bus


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process uses."""
    try:
        import fcntl
    except ImportError:  # Windows, which has no pseudo-terminals either
        yield
        return
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"An emulated arm already uses {folder}. End it, or give --folder another one."
            ) from None
        yield
