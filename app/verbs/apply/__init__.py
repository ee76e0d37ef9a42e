"""The verb `apply`."""
