"""Misuse: treadle was called in a way that cannot be right. Raised at once, with how to do it right."""


class Misuse(ValueError):
    """A call or configuration that cannot be right; the message says what would be."""
