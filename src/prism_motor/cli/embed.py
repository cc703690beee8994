"""``prism embed``: do a policy's features tell conditions apart that it cannot sense?"""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from prism_motor._errors import InputError


def embed(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    conditions: tuple[str, ...] = ("nominal", "low-friction", "payload"),
    envs: int = 40,
    seconds: float = 6.0,
    samples: int = 100,
    seed: int = 1000,
    threads: int = 1,
    checkpoint: int | None = None,
) -> None:
    """Embed features under different dynamics, and measure how well these are told apart.

    Every policy walks under each condition from the same states with the same commands. Writes
    embed.json and embed.png: a t-SNE per run, and cross-validated accuracies.

    Args:
        runs: Run folders, of any number of arms.
        out: Where to write; default: FIRST RUN/analysis/embed.
        conditions: At least two of nominal, low-friction, payload, pushes, training.
        envs: Robots, the same under every condition.
        seconds: How long each walks.
        samples: Samples per condition in the picture.
        seed: Seed of walks, t-SNE and bootstrap.
        threads: Simulation threads.
        checkpoint: Which checkpoint; default: the newest.
    """
    from textwrap import fill

    from prism_motor._progress import Progress
    from prism_motor.analysis.embed import EmbedConfig, NotComparableError, count_work
    from prism_motor.analysis.embed import embed as embed_policy
    from prism_motor.analysis.embed_files import make_caption, make_table, write_embeddings
    from prism_motor.analysis.style import check_matplotlib
    from prism_motor.analysis.subjects import load_subjects
    from prism_motor.analysis.text import align
    from prism_motor.cli._shipped import writable
    from prism_motor.nn.checks import check_size

    check_matplotlib("prism embed")
    check_size("prism embed", "--threads", threads)
    config = EmbedConfig(conditions, envs, seconds, samples, seed)
    subjects, left_out = load_subjects(runs, checkpoint)
    folder = out or writable(runs[0]) / "analysis" / "embed"
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with Progress("Embeddings", sum(count_work(one, config) for one in subjects)) as progress:
        for subject in subjects:
            try:
                found.append(embed_policy(subject, config, threads=threads, report=progress.step))
            except NotComparableError as error:
                left_out.append(f"{subject.path} is left out: {error}")
    for line in left_out:
        print(line)
    if not found:
        raise InputError("None of the policies could be embedded.")
    table = make_table(found)
    files = write_embeddings(found, config, left_out, folder)
    print("\n" + align([table["columns"], *table["rows"]], numbers=3))
    print("\n" + fill(make_caption(found, config), 100))
    print("\n" + "\n".join(map(str, files)))
