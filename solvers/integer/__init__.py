"""The integer program behind `solvers.integer_reference`: its numbers, its search, its process."""
