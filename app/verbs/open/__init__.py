"""The verb `open`."""
