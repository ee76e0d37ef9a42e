"""The page of `profiles`."""
