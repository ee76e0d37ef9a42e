"""What the command line and the demo print: documents in, text out. Nothing here is computed."""
