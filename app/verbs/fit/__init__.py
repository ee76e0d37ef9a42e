"""The verb `fit`."""
