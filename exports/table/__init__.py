"""Compiled tables as files: the binary form, its JSON twin, and what reads a cut out of either."""
