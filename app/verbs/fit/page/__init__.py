"""The page of `fit`."""
