"""Fragments and bounds where a stage's cost changes its line with the fragment size."""
