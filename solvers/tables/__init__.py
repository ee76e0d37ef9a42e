"""Schedules and repeated sizes for every message of a range."""
