"""What a person wants to know about a policy while it trains."""

from __future__ import annotations


def describe(row: dict[str, float]) -> str:
    """Say in one line how the policy does and where the time goes."""
    return (
        f"falls every {row['seconds_between_falls']:.1f} s  "
        f"reward/s {row['reward_per_second']:.2f}  "
        f"errors {row['linear_error']:.2f} m/s {row['yaw_error']:.2f} rad/s  "
        f"{row['samples_per_second']:,.0f} samples/s (physics {row['time/physics']:.0%}, "
        f"policy {row['time/policy']:.0%}, update {row['time/update']:.0%})"
    )
