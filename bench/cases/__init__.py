"""One benchmark a file; each has a SPEC."""
