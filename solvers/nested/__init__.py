"""Fragments that differ from stage to stage: their search, their latency and their bound."""
