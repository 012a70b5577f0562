"""Named units: what the heading of a column says that its amounts are in. Pure, its neighbour is `columns`."""

import re

from treadle.analyst.reading.number_spelling import CURRENCIES

_WORDS = frozenset({"COP", "MAD", "PEN", "RON", "RUB", "TRY"})
# Thousands and millions of a currency are another unit than it is: "Betrag in TEUR", "Amount (Mio. EUR)", "umsatz_eur".
_NAMED = re.compile(
    rf"(?:[\W_](?:in)?[\W_]*)(?P<many>(?:t|k|m|mio\.?|mn\.?|tsd\.?)?)(?P<apart>[ _]?)"
    rf"(?P<code>{'|'.join(sorted(CURRENCIES))}|€)[\W_]*$",
    re.IGNORECASE,
)


def named_unit(heading: str) -> str:
    """The unit that a heading ends in, such as TEUR; empty if in none.

    A code that is a word of English as well, as in "cost_per_pen", counts in capitals only.
    """
    named = _NAMED.search(heading)
    if named is None or (named["code"].upper() in _WORDS and not named["code"].isupper()):
        return ""
    many = "T" if named["many"] == "t" else named["many"]
    return f"{many}{' ' if many and named['apart'] else ''}{named['code'].upper().replace('€', 'EUR')}"
