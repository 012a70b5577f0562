"""Types: what the engine calls those of numbers and of times without a zone."""

INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "HUGEINT")
)

FINEST = "TIMESTAMP_NS"
"""Times in billionths of a second, which other times have no room for."""
TIMES = frozenset(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", FINEST))


def decimals_in(kind: str) -> int | None:
    """Returns how many decimals the values of a type DECIMAL have; None if it is another type."""
    if not (kind.startswith("DECIMAL(") and kind.endswith(")")):
        return None
    _, comma, decimals = kind[len("DECIMAL(") : -1].partition(",")
    return int(decimals) if comma else None
