"""Demonstrations of scripted experts: recorded, written as LeRobotDataset, read into memory."""
