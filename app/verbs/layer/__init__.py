"""The verb `layer`."""
