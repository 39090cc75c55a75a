"""Codecs: schemas and values in the forms other systems read."""
