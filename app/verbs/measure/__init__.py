"""The verb `measure`."""
