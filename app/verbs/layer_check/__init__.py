"""The verb `layer check`."""
