"""Audits of a setting: the form and its result."""
