"""Faults: what must come of kills, full disks, damaged files, second owners and bad input."""
