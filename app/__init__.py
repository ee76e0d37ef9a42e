"""The service, the command line, the page and the jobs: what stands on all other packages.

The layers inside are in pyproject.toml: what is named first may import what is named later.
"""
