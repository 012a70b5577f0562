"""What is written in several pieces and is one code: a licence plate, a house with its street, a telephone number, the
name of a channel or a user with its sign."""

import re

_FORMS = (
    # A licence plate, and the number of a house with its street.
    re.compile(
        r"(?<![\w-])[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} \d{1,4}(?![\w.,-])|"
        r"(?<![\w.,-])\d{1,4}[a-z]? (?:[A-Z][a-z]+ ){1,2}(?:Street|St|Lane|Road|Rd|Avenue|Ave|Way|Drive|Square)\b"
    ),
    # "#random", "@bob"; what has a number is called by that: "#12", "#A12".
    re.compile(r"(?<![\w#@/.&-])(?:#|@)(?:[a-z]|[A-Z][a-z])[\w-]*(?:\.\w+)*"),
    re.compile(r"(?<![\w+])\+\d[\d ()/-]{5,}\d(?![\w.,]\d)"),
)
_ROMAN = re.compile(r"(?:I{2,3}|I[VX]|VI{0,3}|X)$")


def find_codes(text: str) -> list[tuple[int, int]]:
    """Where such codes stand in a text."""
    return [match.span() for form in _FORMS for match in form.finditer(text)]


def is_ordinary(word: str, before: str) -> bool:
    """Whether a word is no code by itself, though it is written like one, with what stands before it: "Gletscherbahn
    II" is called by both."""
    if _ROMAN.match(word) and re.search(r"(?<=\s)[A-Z][a-z]+ $", before):
        return True
    return (
        word in {"OK", "I", "A", "FAQ", "PLEASE"}
        or word.lower() in {"i", "ok"}
        or re.match(r"^\d+(st|nd|rd|th)$", word) is not None
    )


def is_letter(word: str, start: int) -> bool:
    """Whether a word is a letter that something is called by, as in "hall A": an article has no capital there."""
    return len(word) == 1 and word.isupper() and word != "I" and start > 0
