"""The verb `sweep`."""
