"""What a clause says of how a field's values are spelled, or that there is none: "accounts like 8%", "without a plant".

Read by `conditions`, before it looks for values beside a field.
"""

import re
from collections.abc import Callable, Iterator

from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import Token

_EMPTY = re.compile(
    r"\s*(?:that\s+|which\s+)?(?:is|are|has been|was|were)?\s*(?P<not>not\s+)?"
    r"(?:null|empty|blank|(?P<missing>missing))\b(?(missing)(?!\s+(?:in|from|on|at|of|for)\b))",
    re.IGNORECASE,
)
_HELD = re.compile(r"\b(?:where|whose|with|if)\s+(?:the\s+|an?\s+)?$", re.IGNORECASE)
_LACKING = re.compile(r"\b(?:without|with no|lacking|has no|have no)\s+(?:an?\s+|any\s+|the\s+)?$", re.IGNORECASE)
_ENDED = re.compile(r"\s*(?:$|[?.!,;]|and\b)", re.IGNORECASE)
_LIKE = re.compile(
    r"\s*(?:(?:that|which|is|are)\s+)*(?:(?P<like>like)|start(?:s|ing)?\s+with|begin(?:s|ning)?\s+with)\s+"
    r"(?P<quote>[\"'“]?)(?P<text>[\w.%*-]*[\w%*])[\"'”]?",
    re.IGNORECASE,
)


def patterns(
    clause: Clause, field_of: Callable[[Token], str | None], is_time: Callable[[str], bool]
) -> Iterator[tuple[str, str, tuple[Value, ...], int, int]]:
    """Yields field, operator (`like`, `is null`, `is not null`), pattern if any, and the stretch that says so.

    Args:
        clause: the clause.
        field_of: the field that a word names, if any.
        is_time: whether a field holds times: what starts with one is a range, not a spelling.
    """
    for token in clause.tokens:
        field = field_of(token)
        if field is None:
            continue
        rest = clause.text[token.end :]
        before = _LACKING.search(clause.text[: token.start])
        empty = _EMPTY.match(rest)
        # "Which accounts are missing" asks for what has no rows at all, of which no row could tell.
        if empty and (not empty["missing"] or _HELD.search(clause.text[: token.start])):
            op = "is not null" if empty["not"] else "is null"
            yield field, op, (), token.start, token.end + empty.end()
        elif before and _ENDED.match(rest):
            yield field, "is null", (), before.start(), token.end
        elif (like := _LIKE.match(rest)) and not is_time(field):
            text = like["text"].replace("*", "%")
            # As it stands a pattern without a sign for any text would be one value, and "_" any sign.
            if ("%" in text) == bool(like["like"]) and "_" not in text:
                text = text if like["like"] else f"{text}%"
                start, end = token.end + like.start("text"), token.end + like.end("text")
                yield field, "like", (Value(text, "phrase", start, end),), token.start, token.end + like.end()
