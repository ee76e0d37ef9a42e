"""Slow and readable methods that say how good the fast ones are; for tests and benchmarks alone."""
