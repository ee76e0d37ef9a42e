"""Routes, one file a resource: parse, call one operation, return."""
