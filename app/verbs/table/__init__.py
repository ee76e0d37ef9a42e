"""The verb `table`."""
