"""The input panel: its state, its form, and the request that it makes."""
