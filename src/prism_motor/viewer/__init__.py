"""Policies walking live in the browser."""

from importlib.util import find_spec

from prism_motor._extras import missing_extra

if find_spec("viser") is None:
    raise missing_extra("prism play", "viewer", ImportError(name="viser"))
