"""Learning from demonstrations with LeRobot's policies, in run folders that can be trusted."""
