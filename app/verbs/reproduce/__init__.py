"""The verb `reproduce`."""
