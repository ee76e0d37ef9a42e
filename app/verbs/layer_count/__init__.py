"""The verb `layer count`."""
