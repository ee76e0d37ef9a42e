"""Compiled tables as files: the binary form, its JSON twin, and lookups in either."""
