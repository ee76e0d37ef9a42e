"""The engineer's page: HTML made on the server, out of the same operations as the API."""
