"""Drawings of results as stand-alone SVG: strings out of domain objects, nothing else."""
