"""Cuts and bounds where the cost of a stage changes its line with the fragment size."""
