"""The hall where the rooms meet: HTTP, the command line, and the use cases behind both."""
