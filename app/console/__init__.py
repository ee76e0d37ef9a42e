"""The commands of `sluice` and the demo: arguments in, text or JSON out.

One module a verb; what is computed, operations compute.
"""
