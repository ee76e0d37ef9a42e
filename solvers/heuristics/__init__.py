"""Fragments by rule: one fragment, a constant or repeated size, equal fragments, ramps."""
