"""The page of `compose`."""
