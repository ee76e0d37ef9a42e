"""Routes, one file a resource: parse, call one flow, return."""
