"""Settings in the words of the libraries that take them: a target a file, all in `registry`."""
