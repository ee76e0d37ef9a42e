"""The web page: HTML made on the server, out of the same operations that the API calls."""
