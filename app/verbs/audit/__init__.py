"""The verb `audit`."""
