"""The panel in which a question is put: its state, its form, the request that it makes."""
