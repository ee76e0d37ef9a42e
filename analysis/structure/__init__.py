"""Which stages of traced messages overlap, told by when each begins."""
