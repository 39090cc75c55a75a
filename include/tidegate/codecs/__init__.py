"""Forms in which changes leave Tidegate."""
