"""Processes that do the work: how they are started, watched and ended."""
