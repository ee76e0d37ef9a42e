"""The verb `simulate`."""
