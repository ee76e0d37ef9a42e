"""The page of `export`."""
