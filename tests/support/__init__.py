"""What the tests share: counts, system packages, databases."""
