"""Messages cut between items: exact in one stage, bounded by labels in several, and caps."""
