"""The page of `table`."""
