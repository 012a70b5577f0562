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
# Such amounts are not in the unit at the end: "in 1000 EUR", "Mrd. EUR", "USD or EUR"; nor is a "cost per EUR" in it,
# or an "amount excl. EUR".
_OTHERWISE = re.compile(
    rf"00(?!\d)|10\^|1e\d|[$£¥₹>→]|(?<![^\W_])(?:mm|mn|mio|mrd|md|bn|tsd|tausend|thousands?|thds?|hundreds?|hundert|mill?|"
    rf"million(?:s|en)?|milliarden?|billion(?:s|en)?|lakhs?|crores?|cents?|ct|cts|pence|{'|'.join(sorted(CURRENCIES))})"
    rf"(?![^\W_])|"
    rf"(?<![^\W_])(?:k|t|m|b|per|je|pro|to|zu|nach|into|from|aus|von|for|für|not|no|non|nicht|excl|excluding|exkl|ex|without|"
    rf"ohne|or|oder|and|und|vs)[\W_]*$",
    re.IGNORECASE,
)


def named_unit(heading: str) -> str:
    """The unit that a heading ends in, such as TEUR; empty if in none.

    A code that is a word of English as well, as in "cost_in_pen", counts in capitals only; none does where what stands
    before it may make it another unit.
    """
    named = _NAMED.search(heading)
    if (
        named is None
        or _OTHERWISE.search(heading[: named.start()])
        or (named["code"].upper() in _WORDS and not named["code"].isupper())
    ):
        return ""
    many = "T" if named["many"] == "t" else named["many"]
    return f"{many}{' ' if many and named['apart'] else ''}{named['code'].upper().replace('€', 'EUR')}"
