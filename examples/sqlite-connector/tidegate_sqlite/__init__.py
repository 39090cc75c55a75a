"""SQLite as a source of Tidegate."""
