"""How many examples properties are tried on: PROPERTY_DEPTH=20, or `make properties`, tries twenty times as many."""

import os

DEPTH = int(os.environ.get("PROPERTY_DEPTH", "1"))


def deep(count: int) -> int:
    """As many as a test tries, in a run of all tests or in one of properties alone."""
    return count * DEPTH
