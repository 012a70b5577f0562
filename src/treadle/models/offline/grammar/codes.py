"""What is written in several pieces and is one code: a licence plate, a house with its street, a telephone number."""

import re

_FORMS = (
    # A licence plate, and the number of a house with its street.
    re.compile(
        r"(?<![\w-])[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} \d{1,4}(?![\w.,-])|"
        r"(?<![\w.,-])\d{1,4}[a-z]? (?:[A-Z][a-z]+ ){1,2}(?:Street|St|Lane|Road|Rd|Avenue|Ave|Way|Drive|Square)\b"
    ),
    re.compile(r"(?<![\w+])\+\d[\d ()/-]{5,}\d(?![\w.,]\d)"),
)


def find_codes(text: str) -> list[tuple[int, int]]:
    """Where such codes stand in a text."""
    return [match.span() for form in _FORMS for match in form.finditer(text)]


def is_ordinary(word: str) -> bool:
    """Whether a word is no code, though it is written like one."""
    return (
        word in {"OK", "I", "A", "FAQ", "PLEASE"}
        or word.lower() in {"i", "ok"}
        or re.match(r"^\d+(st|nd|rd|th)$", word) is not None
    )
