"""Intervals, paired differences and corrections over training seeds."""
