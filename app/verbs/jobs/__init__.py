"""The verb `jobs`."""
