"""Arithmetic in words and signs: finds the expression that a question asks to have computed.

It only rewrites ("100 divided by 4" is "100 / 4"); it never computes. Read by `question`.
"""

import re

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_N = rf"({_NUMBER})"

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORD_VALUES = {word: str(value) for value, word in enumerate(_SMALL)}
_WORD_VALUES |= {word: str(10 * (place + 2)) for place, word in enumerate(_TENS)} | {"hundred": "100"}
_COMPOUND = re.compile(rf"\b({'|'.join(_TENS)})[- ]({'|'.join(_SMALL[1:10])})\b", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_WORD_VALUES)})\b", re.IGNORECASE)

_REWRITES = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (rf"\b(?:the )?square root of {_N}", r"\1 ** 0.5"),
        (rf"\bhalf of {_N}", r"\1 / 2"),
        (rf"{_N}\s*(?:%|percent|per cent) of {_N}", r"\1 / 100 * \2"),
        (rf"\b(?:add|sum) {_N} (?:and|to|with) {_N}", r"\1 + \2"),
        (rf"\bsum of {_N} and {_N}", r"\1 + \2"),
        (rf"\bdifference (?:between|of) {_N} and {_N}", r"\1 - \2"),
        (rf"\bsubtract {_N} from {_N}", r"\2 - \1"),
        (rf"\bproduct of {_N} and {_N}", r"\1 * \2"),
        (rf"\bmultiply {_N} (?:by|and|with) {_N}", r"\1 * \2"),
        (rf"\bquotient of {_N} and {_N}", r"\1 / \2"),
        (rf"\bdivide {_N} by {_N}", r"\1 / \2"),
        (r"\s*\b(?:divided by|over)\b\s*(?=[\d(.])", " / "),
        (r"\s*\b(?:multiplied by|times)\b\s*(?=[\d(.])", " * "),
        (r"(?<=[\d)])\s*[x×]\s*(?=[\d(.])", " * "),
        (r"\s*\bplus\b\s*(?=[\d(.])", " + "),
        (r"\s*\bminus\b\s*(?=[\d(.])", " - "),
        (r"\s*\b(?:to the power of|raised to)\b\s*(?=[\d(.])", " ** "),
        (r"(?<=[\d)])\s*\bsquared\b", " ** 2"),
        (r"(?<=[\d)])\s*\bcubed\b", " ** 3"),
        (r"\s*÷\s*", " / "),
        (r"(?<=[\d)])\s*\^\s*(?=[\d(.])", " ** "),
        (r"(?<=[\d)])\s*\bmod(?:ulo)?\b\s*(?=[\d(.])", " % "),
    )
)
_DATE = re.compile(r"^\d{4}-\d{1,2}(?:-\d{1,2})?$|^\d{1,2}/\d{1,2}/\d{2,4}$")
_OPERAND = rf"(?:[-+]\s?)?(?:[a-z]\w*\(|\(\s*)*(?:{_NUMBER})(?:\s*\))*"
_EXPRESSION = re.compile(rf"(?<![\w.]){_OPERAND}(?:\s*(?:\*\*|//|[-+*/%])\s*{_OPERAND})*(?![\w])")
_OPERATOR = re.compile(r"(?<=[\d)])\s*(?:\*\*|//|[-+*/%])\s*(?=[-+\d(.a-z])")


def find_arithmetic(text: str) -> str | None:
    """The longest arithmetic expression in `text`, written with operators or words; None if there is none."""
    for rewritten in (_rewrite(text), _rewrite(_digits(text))):
        found = [match for match in _EXPRESSION.finditer(rewritten) if _is_expression(match.group())]
        if found:
            best = max(found, key=lambda match: len(match.group()))
            expression = re.sub(r"(?<=\d),(?=\d{3})", "", best.group().strip())
            return re.sub(r"\s+", " ", expression)
    return None


def _rewrite(text: str) -> str:
    text = re.sub(r"[$€£](?=\d)", "", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _digits(text: str) -> str:
    text = _COMPOUND.sub(lambda match: _WORD_VALUES[match[1].lower()][0] + _WORD_VALUES[match[2].lower()], text)
    return _NUMBER_WORD.sub(lambda match: _WORD_VALUES[match[1].lower()], text)


def _is_expression(text: str) -> bool:
    text = text.strip()
    balanced = text.count("(") == text.count(")")
    called = re.match(r"[a-z]\w*\(", text) is not None
    return balanced and not _DATE.match(text) and (called or _OPERATOR.search(text) is not None)
