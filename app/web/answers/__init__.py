"""Answers: a page of one, its parts, files and reports; stored ones; several side by side."""
