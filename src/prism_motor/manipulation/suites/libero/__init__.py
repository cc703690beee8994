"""LIBERO behind prism's interface: preparation, tasks, a fast simulation of the same physics."""
