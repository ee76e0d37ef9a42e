"""The exact linear program for a given number of fragments, in two independent statements."""
