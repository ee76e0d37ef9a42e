"""The engineer's page, without a browser."""
