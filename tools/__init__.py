"""Programs for who develops this."""
