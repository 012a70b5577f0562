"""Currencies as people write them: by a word, a sign or a code.

Pure functions over text. `plan` reads tools and questions with them: fifty dollars are not fifty euros.
"""

import re
from collections.abc import Iterator

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.words import parts, stem

CURRENCIES = {
    "dollar": "USD", "euro": "EUR", "pound": "GBP", "sterling": "GBP", "yen": "JPY", "franc": "CHF", "yuan": "CNY",
    "rupee": "INR", "krona": "SEK", "krone": "NOK", "zloty": "PLN", "peso": "MXN", "rand": "ZAR", "won": "KRW",
}  # fmt: skip
SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
CODES = word_set("usd eur gbp jpy chf cny inr sek nok dkk pln aud cad nzd mxn zar krw brl czk huf sgd hkd")
_SAID = re.compile(r"[$€£]|[^\W\d_]{3,}")


def currency_of(text: str) -> str | None:
    """The ISO code that a currency's name or code stands for, if it looks like one."""
    if text in SIGNS:
        return SIGNS[text]
    named = next((CURRENCIES[stem(word)] for word in parts(text) if stem(word) in CURRENCIES), None)
    return named or (text.upper() if re.fullmatch(r"[A-Z]{3}", text) or text in CODES else None)


def money_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Where `text` speaks of a currency, and the code of it: by a known name or code, or a sign."""
    for match in _SAID.finditer(text):
        said = match.group().lower()
        code = SIGNS.get(said) or CURRENCIES.get(stem(said)) or (said.upper() if said in CODES else None)
        if code is not None and said not in ("won", "rand"):
            yield match.start(), match.end(), code
