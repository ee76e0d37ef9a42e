"""The views: each parses, calls one flow, makes what its template shows."""
