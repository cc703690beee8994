"""Run the command as ``python -m prism_motor.cli``."""

from prism_motor.cli import main

main()
