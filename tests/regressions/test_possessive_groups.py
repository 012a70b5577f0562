"""Possessive quantifiers behind groups, which Python 3.11.0 to 3.11.4 get wrong: python/cpython issue 106052."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "treadle"
BEHIND_A_GROUP = re.compile(r"[^\\]\)(?:[*+?]|\{\{?\d*,?\d*\}\}?)\+(?!\+)")


def test_no_group_has_a_possessive_quantifier() -> None:
    """On Debian 12 no call in tags was understood, and texts were masked otherwise; `(?>(?:…)*)` says the same."""
    assert all([BEHIND_A_GROUP.search(one) for one in (r"(?:a|b)*+", r"(?:a|b){0,3}+")])
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if BEHIND_A_GROUP.search(line)
    ]
    assert not found
