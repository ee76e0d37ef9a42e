"""The verb `answers`."""
