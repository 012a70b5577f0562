"""How many examples properties are tried on: PROPERTY_DEPTH=20, or `make properties`, tries twenty times as many.

Half as many under the profile `ci` of Hypothesis, which has the same ones every time: `make test` and `make properties`
are what looks where nobody has looked.
"""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
DEPTH = float(os.environ.get("PROPERTY_DEPTH", "0.5" if PROFILE == "ci" else "1"))


def deep(count: int) -> int:
    """As many as a test tries, in a run of all tests or in one of properties alone."""
    return max(1, round(count * DEPTH))
