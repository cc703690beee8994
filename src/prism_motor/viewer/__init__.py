"""Policies live in the browser, and an arm that a person moves there."""

from importlib.util import find_spec

from prism_motor._extras import missing_extra

if find_spec("viser") is None:
    raise missing_extra("The viewer", "viewer", ImportError(name="viser"))
