"""Tracking policies, live: prompted, pushed and loaded."""
