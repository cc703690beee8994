"""Faults: kills, full disks, damaged files, second owners, bad input; what must come of each.

``make test`` runs a sample of every kind; ``make faults`` runs all of them (``PRISM_FAULTS=all``)
and ends with a table: cases, right or clear, tracebacks, silent differences. A case is *right* if
its result is that of a run nothing happened to, to the bit; *clear* if prism refused with one
message and exit code 2, or went on and said what is different, naming the file. Anything else is a
defect: a traceback, or a difference that nobody was told about.

``stops.py`` stops a process at one of its file operations; ``server.py`` forks processes that have
everything imported, so that a case takes well under a second; ``commands.py`` is its other end.
"""
