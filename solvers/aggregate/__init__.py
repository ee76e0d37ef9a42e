"""Fragments for what is known from outside alone: the total and the bottleneck."""
