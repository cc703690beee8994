"""The ``prism`` command: one thin file a subcommand."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from prism_motor._extras import MissingExtraError, missing_extra
from prism_motor.runs.errors import RunError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``prism`` command and turn expected errors into one clear line.

    Args:
        arguments: Command-line words; default: those of this process.
    """
    try:
        from tyro.extras import SubcommandApp
    except ImportError as error:
        sys.exit(f"prism: error: {missing_extra('The prism command', 'cli', error)}")
    # Idle OpenMP threads must not spin while the simulation's threads work; torch reads this once.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from prism_motor.cli import campaign, libero
    from prism_motor.cli.demo import demo
    from prism_motor.cli.demos import demos
    from prism_motor.cli.evaluate import eval_
    from prism_motor.cli.export import export
    from prism_motor.cli.info import info
    from prism_motor.cli.keep import keep
    from prism_motor.cli.params import params
    from prism_motor.cli.physics import physics
    from prism_motor.cli.play import play
    from prism_motor.cli.report import report
    from prism_motor.cli.sim2sim import sim2sim
    from prism_motor.cli.study import add_studies
    from prism_motor.cli.train import train_locomotion
    from prism_motor.cli.train_manipulation import train_manipulation
    from prism_motor.cli.video import video

    train = SubcommandApp()
    train.command(name="locomotion")(train_locomotion)
    train.command(name="manipulation")(train_manipulation)
    app = SubcommandApp()
    for command in (
        info,
        params,
        physics,
        demo,
        demos,
        report,
        keep,
        export,
        sim2sim,
        video,
        play,
    ):
        app.command(command)
    add_studies(app, sys.argv[1:] if arguments is None else arguments)
    app.command(train, name="train", help="Train a policy.")
    campaigns = SubcommandApp()
    for command in (campaign.run, campaign.status, campaign.report):
        campaigns.command(command)
    app.command(campaigns, name="campaign", help="Many runs from one file.")
    preparation = SubcommandApp()
    for command in (libero.prepare, libero.check):
        preparation.command(command)
    app.command(preparation, name="libero", help="Get LIBERO ready on this machine.")
    app.command(name="eval")(eval_)
    try:
        app.cli(
            prog="prism",
            description="Learned products of what a robot senses, for any robot policy.",
            args=arguments,
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `prism info | head` is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ValueError, OSError, FloatingPointError, MissingExtraError, RunError) as error:
        if os.environ.get("PRISM_TRACEBACK"):
            raise
        print(f"prism: error: {error}", file=sys.stderr)
        print("(set PRISM_TRACEBACK=1 to see where it came from)", file=sys.stderr)
        sys.exit(2)
