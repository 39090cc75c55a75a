"""What a source table looks like: logical types, columns, keys, fingerprints."""
