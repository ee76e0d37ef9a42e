"""The verb `verify`."""
