"""One module a file format: text in, a trace out, and every refusal names the line and the rule."""
