"""The page of `layer`."""
