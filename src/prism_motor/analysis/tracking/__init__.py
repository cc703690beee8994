"""Studies of policies that track motions."""
