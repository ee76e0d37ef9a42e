"""The application: HTTP, the command line, and the use cases behind both."""
