"""The engineer's page: HTML made on the server, out of the same flows that the API calls."""
