"""The page of `crossover`."""
