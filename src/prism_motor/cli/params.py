"""``prism params``: every named network with its parameter count against the paper's."""

from __future__ import annotations

import json as json_format
import sys


def params(json: bool = False) -> None:
    """List every named network with its parameter count against the paper's.

    Exits with status 1 if a count is off.

    Args:
        json: Print JSON instead of a table.
    """
    from prism_motor.networks import NETWORKS

    rows = [
        {
            "name": network.name,
            "parameters": network.count(),
            "expected": network.expected,
            "paper": network.printed,
        }
        for network in NETWORKS
    ]
    wrong = [row["name"] for row in rows if row["parameters"] != row["expected"]]
    if json:
        print(json_format.dumps(rows, indent=2))
    else:
        width = max(len(network.name) for network in NETWORKS)
        print(f"{'network':<{width}}  {'parameters':>10}  {'expected':>10}      paper prints")
        for row in rows:
            mark = "DIFFERS" if row["name"] in wrong else "ok"
            line = f"{row['name']:<{width}}  {row['parameters']:>10,}  {row['expected']:>10,}  "
            print(f"{line}{mark:<4}{row['paper']}".rstrip())
    if wrong:
        print(f"prism: error: counts differ for {', '.join(map(str, wrong))}", file=sys.stderr)
        sys.exit(1)
