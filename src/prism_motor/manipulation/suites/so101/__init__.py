"""The SO-101 twin as a suite."""
