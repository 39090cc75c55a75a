"""The change event: position, transaction, operation."""
