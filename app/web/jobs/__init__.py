"""Durable jobs as pages."""
