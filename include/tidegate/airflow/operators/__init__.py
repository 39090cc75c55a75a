"""Operators: each starts one job process and says what it did."""
