"""The verb `mover`."""
