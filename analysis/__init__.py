"""Why an answer is what it is: domain objects in, explanations out. Nothing is solved here."""
