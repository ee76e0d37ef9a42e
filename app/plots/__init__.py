"""Drawings of results as stand-alone SVG: domain objects in, text out."""
