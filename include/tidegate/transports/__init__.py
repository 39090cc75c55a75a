"""Transports carry changes from a source to the lake: ``embedded`` needs no broker."""
