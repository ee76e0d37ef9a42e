"""The page of `audit`."""
