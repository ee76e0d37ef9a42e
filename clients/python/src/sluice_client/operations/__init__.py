"""The operations of the service as calls, one function each; both clients are made of these."""
