"""PRISM: learned products of what a robot senses, as one small layer for any policy.

``prism`` and ``prism.nn`` need torch alone. Everything else sits behind an extra and says so when
the extra is missing.
"""

from prism import nn
from prism._version import __version__

__all__ = ["__version__", "nn"]
