"""The page of `jobs`."""
