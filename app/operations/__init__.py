"""What may take long, one file a verb: prepared from the store, run anywhere, kept."""
