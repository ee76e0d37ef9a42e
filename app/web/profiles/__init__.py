"""Hardware profiles: their pages, compiled tables and exports."""
