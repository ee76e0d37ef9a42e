"""Durable jobs: the ledger that several services share, and the runner that works it off."""
