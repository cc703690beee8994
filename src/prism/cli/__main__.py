"""Run the command as ``python -m prism.cli``."""

from prism.cli import main

main()
