"""The optimum in real sizes with its proof, and whole-byte fragments near it."""
