"""The values that all packages share: frozen, validated, units in their names.

Standard library only. Outside data is validated when it becomes one of these, and never again.
"""
