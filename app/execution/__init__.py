"""The one way to run work outside the process that asks: engine protocol and local engine."""
