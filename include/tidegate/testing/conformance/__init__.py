"""The conformance suite: cases in YAML, run on a real source, asserted through several readers."""
