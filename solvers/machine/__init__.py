"""What is solved of machines: lanes, windows, delays and processors."""
