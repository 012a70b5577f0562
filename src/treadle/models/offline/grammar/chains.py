"""One sum after another: "Add 3 and 4, then multiply the result by 10" as one expression.

Only what goes on with the result is read; an amount of anything else is none of it. Read by `arithmetic`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from treadle.models.offline.grammar.english import word_set

_N = r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w.,%]*\w)(?!\s*(?:%|percent))"
_IT = r"(?:(?:the|this|that) (?:result|sum|answer|total|product|difference|quotient|number|outcome)|it|that|this)"
_STEPS = (
    (rf"multiply (?:{_IT} )?(?:by|with) {_N}", "*"),
    (rf"divide (?:{_IT} )?by {_N}", "/"),
    (rf"add {_N}(?: to {_IT})?", "+"),
    (rf"(?:subtract|take|deduct) {_N}(?: (?:away )?from {_IT})?", "-"),
    (rf"double {_IT}()", "* 2"),
    (rf"halve {_IT}()", "/ 2"),
    (rf"square {_IT}()", "** 2"),
)
_LED = r"\s*[,.;]?\s+(?:and\s+)?(?:then\s+)?"
# What a sum is said with. With any other word it is one of something, or none: "Add 3 and 4 to the price", "but not".
_WORDS = word_set(
    "what s is are how much please pls plz kindly then now first and add sum to with from by take away subtract deduct "
    "multiply multiplied divide divided double halve square plus minus times over of the product difference quotient "
    "total between percent result it that this answer number outcome half squared cubed power raised root tell me "
    "calculate compute"
)
_SENTENCE = re.compile(r"[?!;\n]|\.\s(?!\s*then\b)", re.IGNORECASE)
_LAST = tuple(
    (re.compile(rf"^(?P<before>.*?\d.*?)(?P<step>{_LED}{step})\s*(?:[?.!]\s*)*$", re.IGNORECASE | re.DOTALL), sign)
    for step, sign in _STEPS
)


@dataclass(frozen=True, slots=True)
class Chain:
    """A sum that goes on with the result of what is before it.

    `expression` is all of it, `first` the text and `begun` the expression that it begins with, and `end` where its last
    step ends.
    """

    expression: str
    first: str
    begun: str
    end: int


def find_chain(text: str, arithmetic: Callable[[str], str | None]) -> Chain | None:
    """The chain of sums that `text` is; None if it is none.

    Args:
        text: the text.
        arithmetic: finds the expression in a text.
    """
    for pattern, sign in _LAST:
        match = pattern.match(text)
        if match is None:
            continue
        before = match["before"]
        inner = find_chain(before, arithmetic)
        begun = inner.expression if inner is not None else arithmetic(before)
        words = re.findall(r"[^\W\d_]+", before.lower())
        if begun is None or _SENTENCE.search(before) or not _WORDS.issuperset(words):
            return None
        amount = next((group for group in match.groups()[2:] if group), "").replace(",", "")
        expression = f"({begun}) {sign} {amount}".rstrip()
        first = inner.first if inner is not None else before
        return Chain(expression, first, inner.begun if inner is not None else begun, match.end("step"))
    return None
