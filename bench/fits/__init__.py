"""What the fitting case is measured on: synthetic truth, and the peers it is held against."""
