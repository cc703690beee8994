"""The page of the demo: videos, the products that fire, one table, and what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._console import count
from prism_motor._page import render_page
from prism_motor.report.attachments import AttachmentBudget
from prism_motor.report.collect import RunRecord, collect
from prism_motor.report.tables import Cell, Table, blank
from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import write_text

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy

TITLES = {"prism": "PRISM", "mlp-matched": "MLP, same size"}
"""The arms in words."""

_MEASURES = ("survived", "linear_error", "yaw_error", "speed_ratio")
"""Columns of the table."""


@dataclass(frozen=True)
class Product:
    """A product of signals in a policy, and how much it does."""

    name: str
    """Its signals: ``dq L knee (t) × clock sin (t-1)``."""
    role: str
    """What it is for."""
    effect: float
    """How far the joint target would move without it, mean while walking, mrad."""


@dataclass(frozen=True)
class ShownPolicy:
    """A policy on the page."""

    run: Path
    """Its run folder, in that of the page."""
    title: str
    """What it is called."""
    colour: str
    """Its arm's colour."""
    shipped: bool
    """Whether it came with the package."""
    videos: tuple[Path, ...]
    """Its videos; those that do not exist are left out."""
    products: tuple[Product, ...]
    """Its strongest products, strongest first; empty for a policy without any."""


@dataclass(frozen=True)
class Demo:
    """What the demo has made."""

    page: Path
    """The page."""
    table: Table
    """Its table."""


def title_of(policy: WalkingPolicy) -> str:
    """Return what a policy is called: ``PRISM, 200 updates``."""
    arm = policy.config.arm
    return f"{TITLES.get(arm, arm)}, {count(policy.step, 'update')}"


def describe_command(command: Sequence[float] | None) -> str:
    """Return a command in words: ``0.3 m/s ahead, turning left by 0.5 rad/s``."""
    if command is None:
        return "commands as in training"
    ahead, left, turn = command
    parts = [f"{ahead:g} m/s ahead"] if ahead or not (left or turn) else []
    parts += [f"{abs(left):g} m/s to the {_side(left)}"] if left else []
    parts += [f"turning {_side(turn)} by {abs(turn):g} rad/s"] if turn else []
    return ", ".join(parts)


def _side(value: float) -> str:
    return "left" if value > 0 else "right"


def write_demo(
    policies: Sequence[ShownPolicy],
    captions: Sequence[str],
    out: Path,
    *,
    command: str,
    problem: str = "",
) -> Demo:
    """Write the page.

    Args:
        policies: What to show, in order.
        captions: What each policy's videos show.
        out: Folder of the page and of all runs.
        command: Command that makes the page again.
        problem: Why there are no videos; empty if there are.
    """
    records = {run.path.resolve(): run for run in collect(out).runs}
    table = compare(policies, records)
    budget = AttachmentBudget(out)
    groups = [
        {
            "title": title,
            "films": _films([p for p in policies if p.shipped == shipped], captions, budget),
        }
        for title, shipped in (
            ("Just trained on this machine", False),
            ("The same networks, trained for longer: they ship with prism", True),
        )
    ]
    made = collect_provenance()
    page = out / "index.html"
    contents = {
        "title": "Learning to walk, side by side",
        "groups": [group for group in groups if group["films"]],
        "firing": [_firing(one) for one in policies if one.products],
        "table": table,
        "folder": out.as_posix(),
        "run": next((one.run.as_posix() for one in policies if one.products), "g1-prism"),
        "command": command,
        "problem": problem,
        "made": f"Page made {made['created'][:16].replace('T', ' ')} UTC by prism {made['prism']}.",
    }
    write_text(page, render_page("demo.html", script="report.js", **contents))
    return Demo(page, table)


def compare(policies: Sequence[ShownPolicy], records: Mapping[Path, RunRecord]) -> Table:
    """Return the table: one row per policy, means over its episodes.

    Args:
        policies: The rows.
        records: What is stored in their folders.
    """
    rows, headings, episodes = [], [], 0
    for one in policies:
        record = records[one.run.resolve()]
        spec = record.spec
        found = record.episodes(spec.plain)
        episodes = max(episodes, len(found))
        measures = [spec.measure(field) for field in _MEASURES]
        headings = [measure.heading for measure in measures]
        cells = [Cell(one.title, "ships with prism" if one.shipped else "trained here")]
        for measure in measures:
            values = [value for episode in found if (value := measure.value(episode)) is not None]
            mean = sum(values) / len(values) if values else None
            cells.append(blank() if mean is None else Cell(measure.write(mean)))
        size = spec.parameters(record.config)
        cells.append(blank() if size is None else Cell(f"{size:,}"))
        rows.append(tuple(cells))
    note = (
        f"Means over {count(episodes, 'episode')} of each policy, with random commands: "
        "forward, sideways and turning. Speed / commanded: 1 is as fast as it was told. One "
        "training per network, so this shows that they walk, not which network is better: that "
        "needs several trainings each."
    )
    return Table("Measured", ("policy", *headings, "parameters"), tuple(rows), note)


def _films(
    policies: Sequence[ShownPolicy], captions: Sequence[str], budget: AttachmentBudget
) -> list[dict[str, Any]]:
    """Return the videos, policies side by side under the same command."""
    films = []
    for index, caption in enumerate(captions):
        for policy in policies:
            file = policy.videos[index]
            found = budget.take(file, "video/mp4") if file.exists() else None
            if found is not None:
                shown = {"title": policy.title, "colour": policy.colour}
                films.append({"file": found, "caption": caption, **shown})
    return films


def _firing(policy: ShownPolicy) -> dict[str, Any]:
    most = max(product.effect for product in policy.products)
    bars = [
        {"name": one.name, "role": one.role, "effect": one.effect, "share": 100 * one.effect / most}
        for one in policy.products
    ]
    return {"title": policy.title, "colour": policy.colour, "bars": bars}
