"""Asking: queries, comparisons and what is found out about them, from a request to an answer."""
