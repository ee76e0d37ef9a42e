"""The page of `answers`."""
