"""Traces to stages: readers turn text into a trace, fits turn a trace into stages with errors."""
