"""A question that calls for a tool by its name, `Call get_weather for Bonn`, in the words that the name is made of.

Called by `model`. People who have just written a tool ask for it so; to the planner a name is no word by itself.
"""

import re
from collections.abc import Collection

from treadle.models.offline.grammar.words import parts

_CALL = r"(?:call|use|run|invoke|execute)\s+(?:the\s+)?(?:(?:tool|function)\s+)?"
_QUOTE = re.compile(r"[\"“”«»`‘]|(?<!\w)'")


def in_words(question: str, names: Collection[str]) -> str:
    """`question` with the tools that it orders by name said in words; as it is where it orders none so.

    Only an order that opens the question is read so, and what is joined to it by "and" or "then", up to the first
    quotation mark: a name that stands elsewhere is spoken of, or is what somebody is to be told.

    Args:
        question: what was asked.
        names: those of the tools that are offered.
    """
    if not any(name in question for name in names):
        return question
    joined = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    opened = rf"(?P<lead>^\W*(?:please\s+)?|\b(?:and|then)\s+)(?P<call>{_CALL})?(?P<name>{joined})"
    order = re.compile(rf"{opened}(?!\w)(?:\(\s*\))?(?:\s+(?:tool|function)\b)?", re.IGNORECASE)
    quote = _QUOTE.search(question)
    end = len(question) if quote is None else quote.start()
    said, rest = question[:end], question[end:]
    first = order.match(said)
    if first is None or _as_a_word(first):
        return question
    return order.sub(lambda match: match[0] if _as_a_word(match) else _said(match), said) + rest


def _as_a_word(order: re.Match[str]) -> bool:
    """Whether a tool's name may as well be a word of the question: "stock and price of nuts"."""
    return order["call"] is None and order["name"].isalpha()


def _said(order: re.Match[str]) -> str:
    return order["lead"] + " ".join(parts(order["name"]))
