"""The verb `deliver`."""
