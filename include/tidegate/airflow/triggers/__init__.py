"""Triggers: what deferred tasks wait for, in the triggerer."""
