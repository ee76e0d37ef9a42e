"""The verb `crossover`."""
