"""Settings in the words of the libraries that take them: one target a file, see `registry`."""
