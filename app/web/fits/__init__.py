"""Fits of measurements: their page, charts, and fits that are made again."""
