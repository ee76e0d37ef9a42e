"""The page of `optimize`."""
