"""LIBERO behind prism's interface: setup, tasks, and a faster simulation of the same physics."""
