"""The verb `keys`."""
