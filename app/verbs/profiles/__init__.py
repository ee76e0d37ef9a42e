"""The verb `profiles`."""
