"""The verb `compose`."""
