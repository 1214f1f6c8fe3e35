"""Expressions and what NumPy's names mean for them."""
