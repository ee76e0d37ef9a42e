"""What is sent and answered: declarations, and the rules that bodies are held to."""
