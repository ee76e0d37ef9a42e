"""The verb `fleet`."""
