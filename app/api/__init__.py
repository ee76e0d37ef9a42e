"""Routes of the REST API, one file a resource: parse, have the service do it, answer."""
