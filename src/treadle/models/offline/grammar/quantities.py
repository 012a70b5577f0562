"""Times of day and large numbers as people write them: "10:00", "10am", "2m EUR", "1.5 million".

Read by `question`. A letter behind a number is a factor beside a currency only: elsewhere it may be metres or minutes.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

_TIME = re.compile(
    r"(?<![\w.,:-])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?!\d|:)(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?<![\w.,:-])(?P<plain>0?[1-9]|1[0-2])\s?(?P<day>[ap])\.?m\b\.?",
    re.IGNORECASE,
)
_FACTORS = {
    "thousand": 3, "thousands": 3, "tsd": 3, "k": 3, "million": 6, "millions": 6, "mio": 6, "mn": 6, "m": 6,
    "billion": 9, "billions": 9, "bio": 9, "bn": 9, "mrd": 9,
}  # fmt: skip
_CURRENCY = r"(?:[€$£]|[A-Z]{3}\b|(?i:euros?|dollars?|pounds?|yen|francs?)\b)"
_NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_LARGE = re.compile(
    rf"(?<![\w.,]){_NUMBER}\s?(?P<word>(?i:thousand|tsd|millions?|mio|mn|billions?|bio|bn|mrd))\b\.?"
    rf"|(?<![\w.,]){_NUMBER.replace('number', 'before')}\s?(?P<letter>[kKmM])\b(?=\s?{_CURRENCY})"
    rf"|(?<=[€$£]){_NUMBER.replace('number', 'behind')}\s?(?P<sign>[kKmM])\b"
)


def scale_of(words: Iterable[str]) -> int:
    """What one of the words, such as "millions", multiplies a figure by; 1 if none does."""
    return next((10 ** _FACTORS[word] for word in words if len(word) > 2 and word in _FACTORS), 1)


def find_times(text: str) -> Iterator[tuple[int, int, str]]:
    """Where `text` has times of day, and each as HH:MM."""
    for match in _TIME.finditer(text):
        hour, minute = int(match["hour"] or match["plain"]), int(match["minute"] or 0)
        half = (match["half"] or match["day"] or "").lower()
        if half and not 1 <= hour <= 12:
            continue
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        yield match.start(), match.end(), f"{hour:02}:{minute:02}"


def find_large_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Where `text` has a number with a word or letter for thousands, millions or billions, and its digits."""
    for match in _LARGE.finditer(text):
        digits = match["number"] or match["before"] or match["behind"]
        factor = _FACTORS[(match["word"] or match["letter"] or match["sign"]).lower()]
        whole = Decimal(digits.replace(",", "")).scaleb(factor)
        end = match.end("word") if match["word"] else match.end()
        yield match.start(), end, f"{whole.normalize():f}"
