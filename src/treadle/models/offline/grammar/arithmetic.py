"""Arithmetic in words and signs: finds the expression that a question asks to have computed.

It only rewrites ("100 divided by 4" is "100 / 4"); it never computes. Read by `question`.
"""

import re
from collections import Counter
from collections.abc import Sequence

from treadle.models.offline.grammar.chains import find_chain

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

_GOES_ON = r"[\d.,]*\w|\s*[-+*/%^×÷x(]|\s+(?:plus|minus|times|over|divided|multiplied|per|to|mod|squared|cubed)"
_REWRITES = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (rf"\b(?:the )?square root of {_N}", r"\1 ** 0.5"),
        (rf"\bhalf of {_N}", r"\1 / 2"),
        (rf"\b(?:a|one) third of {_N}", r"\1 / 3"),
        (rf"\b(?:a|one) quarter of {_N}", r"\1 / 4"),
        (rf"(?<![-+*/%^(] )\b(?:twice|double) {_N}(?!{_GOES_ON})", r"2 * \1"),
        (rf"{_N}\s*(?:%|percent|per cent) more than {_N}", r"\2 * (1 + \1 / 100)"),
        (rf"{_N}\s*(?:%|percent|per cent) (?:less than|off) {_N}", r"\2 * (1 - \1 / 100)"),
        (rf"{_N}\s*(?:%|percent|per cent) of {_N}", r"\1 / 100 * \2"),
        (rf"\b(?:add|sum) {_N} (?:and|to|with) {_N}", r"\1 + \2"),
        (rf"\bdifference (?:between|of) {_N} and {_N}", r"\1 - \2"),
        (rf"\b(?:subtract|take|deduct) {_N} (?:away )?from {_N}", r"\2 - \1"),
        (rf"(?<!^is )(?<![-+*/%] ){_N} less than {_N}", r"\2 - \1"),
        (rf"(?<!^is )(?<![-+*/%] ){_N} more than {_N}", r"\2 + \1"),
        (rf"\bproduct of {_N} and {_N}", r"\1 * \2"),
        (rf"\bmultiply {_N} (?:by|and|with) {_N}", r"\1 * \2"),
        (rf"\bquotient of {_N} and {_N}", r"\1 / \2"),
        (rf"\bdivide {_N} by {_N}", r"\1 / \2"),
        (r"(?<!\s)\s*+\b(?:divided by|over)\b\s*(?=[\d(.])", " / "),
        (r"(?<!\s)\s*+\b(?:multiplied by|times)\b\s*(?=[\d(.])", " * "),
        (r"(?<=[\d)])\s*+[x×]\s*(?=[\d(.])", " * "),
        (r"(?<!\s)\s*+\bplus\b\s*(?=[\d(.])", " + "),
        (r"(?<!\s)\s*+\bminus\b\s*(?=[\d(.])", " - "),
        (r"(?<!\s)\s*+\b(?:to the power of|raised to)\b\s*(?=[\d(.])", " ** "),
        (r"(?<=[\d)])\s*+\bsquared\b", " ** 2"),
        (r"(?<=[\d)])\s*+\bcubed\b", " ** 3"),
        (r"(?<!\s)\s*+÷\s*", " / "),
        (r"(?<=[\d)])\s*+\^\s*(?=[\d(.])", " ** "),
        (r"(?<=[\d)])\s*+\bmod(?:ulo)?\b\s*(?=[\d(.])", " % "),
    )
)
_LISTED = rf"((?:{_NUMBER})(?:,\s+(?:{_NUMBER}))*,?\s+and\s+(?:{_NUMBER}))(?![\w.,]*\w)"
_SUM = re.compile(rf"\b(?:sum|total) of {_LISTED}", re.IGNORECASE)
_MEAN = re.compile(rf"\b(?:average|mean) of {_LISTED}(?!\s*(?:[-+*/]|plus|minus|times))", re.IGNORECASE)
# "Is 3 times 4 less than 10?" compares, and subtracts nothing.
_COMPARING = re.compile(r"^\W*(?:is|are|was|were|does|do|did|would|will|isn't|aren't)\b", re.IGNORECASE)
_DATE = re.compile(r"^\d{4}-\d{1,2}(?:-\d{1,2})?$|^\d{1,2}/\d{1,2}/\d{2,4}$")
_OPERAND = rf"(?:[-+]\s?)?(?:[a-z]\w*\(|\(\s*)*(?:{_NUMBER})(?:\s*\))*"
_EXPRESSION = re.compile(rf"(?<![\w.]){_OPERAND}(?:\s*(?:\*\*|//|[-+*/%])\s*{_OPERAND})*(?![\w])")
_OPERATOR = re.compile(r"(?<=[\d)])\s*+(?:\*\*|//|[-+*/%])\s*(?=[-+\d(.a-z])")


def find_arithmetic(text: str) -> str | None:
    """The longest arithmetic expression in `text`, written with operators or words; None if there is none."""
    chain = find_chain(text, _longest)
    return _longest(text) if chain is None else chain.expression


def is_chain(text: str) -> bool:
    """Whether `text` is one sum after another, of which the later ones go on with the result of the first."""
    return find_chain(text, _longest) is not None


def _longest(text: str) -> str | None:
    for rewritten in (_rewrite(text), _rewrite(_digits(text))):
        found = [match for match in _EXPRESSION.finditer(rewritten) if _is_expression(match.group())]
        if found:
            best = max(found, key=lambda match: len(match.group()))
            expression = re.sub(r"(?<=\d),(?=\d{3})", "", best.group().strip())
            return re.sub(r"\s+", " ", expression)
    return None


_WORDS = re.compile(
    r"\b(?:square root of|half of|(?:a|one) (?:third|quarter) of|twice|double|(?:the )?(?:average|mean) of|"
    r"(?:the )?(?:sum|total|product|quotient) of|difference (?:between|of)|add|sum|subtract|deduct|take|"
    r"multiply|divide|divided by|multiplied by|over|plus|minus|times|to the power of|raised to|percent|per cent|"
    r"(?:less|more) than|mod(?:ulo)?|squared|cubed)\b|\bsqrt\b|[-+*/%^×÷()=]",
    re.IGNORECASE,
)
_MEANT = {
    "+": ("sum", "total", "add", "plus", "more", "+"),
    "-": ("difference", "subtract", "minus", "less", "take", "deduct", "-"),
    "*": ("product", "multipl", "times", "*", "×"),
    "/": ("quotient", "divide", "over", "/", "÷"),
    "**": ("square root", "to the power", "raised", "squared", "cubed", "sqrt", "^", "*"),
    "%": ("mod", "%"),
    "/ 100": ("percent", "per cent", "%"),
    "": ("(", ")", "="),
}
"""For each sign, how the words begin that it was made of."""
_MEANT_WITH = {
    "*": ("twice", "double"),
    "/": ("half", "a third", "one third", "a quarter", "one quarter", "average", "mean"),
}
"""The same, of words that say a number as well."""


def number_words(text: str) -> list[tuple[int, int, str]]:
    """Where `text` writes a number in words, and its digits; "one" is none, as it seldom counts."""
    found = [
        (*match.span(), _WORD_VALUES[match[1].lower()][0] + _WORD_VALUES[match[2].lower()])
        for match in _COMPOUND.finditer(text)
    ]
    for match in _NUMBER_WORD.finditer(text):
        if match[0].lower() != "one" and not any(
            match.start() < end and start < match.end() for start, end, _ in found
        ):
            found.append((*match.span(), _WORD_VALUES[match[0].lower()]))
    return sorted(found)


def expression_span(expression: str, text: str, numbers: Sequence[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """The stretches of `text` that an expression found in it was made of: its numbers, and the words and signs of
    arithmetic beside them.

    Args:
        expression: the expression.
        text: what it was found in.
        numbers: where `text` has numbers, and what they are.
    """
    chain = find_chain(text, _longest)
    if chain is not None and chain.expression == expression:
        begun = [each for each in numbers if each[1] <= len(chain.first)]
        spans = expression_span(chain.begun, chain.first, begun)
        return [*spans, (max((end for _, end in spans), default=chain.end), chain.end)]
    own = Counter(re.findall(r"\d+(?:\.\d+)?|\.\d+", expression))
    for size in range(len(numbers), 0, -1):
        for place in range(len(numbers) - size + 1):
            run = numbers[place : place + size]
            if Counter(number.replace(",", "").lstrip("-") for *_, number in run) <= own:
                start, end = run[0][0], run[-1][1]
                more = sum(own.values()) > len(run)
                return [(start, end), *_beside(text, start, end, expression, more)]
    return []


def _beside(text: str, start: int, end: int, expression: str, more: bool) -> list[tuple[int, int]]:
    """The words of arithmetic right before and right after a stretch that are in its expression, which has `more`
    numbers than the stretch or not."""
    found = []
    known = [*_MEANT.items(), *(_MEANT_WITH.items() if more else ())]
    meant = tuple(word for sign, words in known if sign in expression for word in words)
    for match in _WORDS.finditer(text):
        before = match.end() <= start and not re.search(r"\w", text[match.end() : start])
        after = match.start() >= end and not re.search(r"\w", text[end : match.start()])
        if (before or after) and match[0].lower().removeprefix("the ").startswith(meant):
            found.append(match.span())
    return found


def _rewrite(text: str) -> str:
    text = re.sub(r"[$€£](?=\d)", "", text)
    text = _SUM.sub(lambda match: " + ".join(re.findall(_NUMBER, match[1])), text)
    text = _MEAN.sub(lambda match: _mean(re.findall(_NUMBER, match[1])), text)
    compared = _COMPARING.match(text) is not None
    for pattern, replacement in _REWRITES:
        if not compared or "than" not in pattern.pattern:
            text = pattern.sub(replacement, text)
    return text


def _mean(numbers: list[str]) -> str:
    return f"({' + '.join(numbers)}) / {len(numbers)}"


def _digits(text: str) -> str:
    text = _COMPOUND.sub(lambda match: _WORD_VALUES[match[1].lower()][0] + _WORD_VALUES[match[2].lower()], text)
    return _NUMBER_WORD.sub(lambda match: _WORD_VALUES[match[1].lower()], text)


def _is_expression(text: str) -> bool:
    text = text.strip()
    balanced = text.count("(") == text.count(")")
    called = re.match(r"[a-z]\w*\(", text) is not None
    return balanced and not _DATE.match(text) and (called or _OPERATOR.search(text) is not None)
