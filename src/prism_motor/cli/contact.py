"""``prism contact``: force and speed of trained policies around their first contact."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional


def contact(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    compliance: tuple[str, ...] = (),
    episodes: int = 10,
    linger: int = 8,
    seed: int = 401,
    stiffness: float | None = None,
    checkpoint: int | None = None,
) -> None:
    """Compare what policies do when they touch something: force, speed, impulse, work, power.

    All begin from the same fixed initial states of their task. Writes contact.json and contact.png.

    Args:
        runs: Run folders of one task, of any number of arms and training seeds.
        out: Where to write; default: FIRST RUN/analysis/contact.
        compliance: Also the first run's arm with these around it: mcc-sensorless, mcc-oracle, or a
            compliance.json of prism compliance.
        episodes: Initial states of every policy.
        linger: Control steps to go on after success.
        seed: Seed of the policies' noise.
        stiffness: Kp of LIBERO's controller for all arms; the paper has 50. Default: LIBERO's own,
            150.
        checkpoint: Which checkpoint; default: the newest.
    """
    from textwrap import fill

    from prism_motor._progress import Progress
    from prism_motor.analysis.contact_files import make_caption, make_table, write_contacts
    from prism_motor.analysis.contact_study import ContactConfig, make_contenders, record_contacts
    from prism_motor.analysis.manipulators import load_manipulators
    from prism_motor.analysis.style import check_matplotlib
    from prism_motor.analysis.text import align
    from prism_motor.manipulation.data import environment_of

    check_matplotlib("prism contact")
    config = ContactConfig(episodes, seed, linger, compliance, stiffness)
    manipulators, left_out = load_manipulators(runs, checkpoint)
    for line in left_out:
        print(line)
    folder = out or runs[0] / "analysis" / "contact"
    folder.mkdir(parents=True, exist_ok=True)
    contenders = make_contenders(manipulators, config)
    environment = environment_of(manipulators[0].policy.config, stiffness)
    try:
        with Progress("Contacts", len(contenders) * (episodes + 1)) as progress:
            records = record_contacts(contenders, environment, config, progress.step)
    finally:
        environment.close()
    files = write_contacts(records, environment.task, config, left_out, folder)
    for title, successful in (("All episodes", False), ("Successful episodes", True)):
        content = make_table(records, successful=successful)
        print(f"\n{title}\n\n" + align([content["columns"], *content["rows"]], numbers=1))
    print("\n" + fill(make_caption(records, environment.task, config), 100))
    print("\n" + "\n".join(map(str, files)))
