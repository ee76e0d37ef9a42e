"""The verb `optimize`."""
