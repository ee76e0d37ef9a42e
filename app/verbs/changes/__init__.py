"""The verb `changes`."""
