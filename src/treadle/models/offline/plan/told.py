"""What a parameter's description tells beside its schema: the values that it takes, where it lists them.

Many tools have no `enum`, and say "sent, packed or delayed". Called by `toolbox`.
"""

import re

from treadle.models.offline.grammar.english import (
    COUNT_WORDS,
    PERSON_WORDS,
    PLACE_WORDS,
    TEXT_WORDS,
    TITLE_WORDS,
    word_set,
)
from treadle.models.offline.grammar.words import is_function_word

_ITEM = r"['\"`“]?[^\W\d_][\w-]*['\"`”]?"
_LIST = re.compile(rf"(?:^|[:(]\s*|\b(?:one of|either)\s+)({_ITEM}(?:\s*,\s*{_ITEM})*,?\s+or\s+{_ITEM})\s*(?=$|[.;()])")
# "Title or author" are kinds of what it takes, and no values.
_KINDS = (
    PERSON_WORDS
    | PLACE_WORDS
    | TITLE_WORDS
    | TEXT_WORDS
    | COUNT_WORDS
    | word_set(
        "id ids code codes number numbers string text url path file date day time word words category tag tags label "
        "email phone key label type kind isbn iso ref reference symbol ticker nickname surname initials none null "
        "empty more less part whole"
    )
)


_NAMED = re.compile(
    r"\b([^\W\d_]+)['’]s (?:full |first |last |own )*(?:name|id|number)\b|"
    r"\b(?:name|id|number) of (?:the|an?) ([^\W\d_]+)",
    re.IGNORECASE,
)
_WHO = re.compile(r"^\W*(?:(?:for|to|by|of|from|with) )?(?:who|whom|whose)\b", re.IGNORECASE)


def told_noun(description: str) -> str:
    """What a plain `name` or `id` is one of, as the employee of "the employee's name"; empty if it does not tell."""
    if _WHO.match(description):
        return "person"
    match = _NAMED.search(description)
    return (match[1] or match[2]).lower() if match is not None else ""


def told_values(description: str) -> tuple[str, ...]:
    """The values that a description lists, as "giro, savings or travel" does; none if it lists none."""
    match = _LIST.search(description)
    if match is None:
        return ()
    items = [item.strip("'\"`“” ") for item in re.split(r",\s*or\s+|,|\s+or\s+", match[1])]
    kinds = any(item.lower() in _KINDS or (item.islower() and is_function_word(item)) for item in items)
    return () if kinds else tuple(dict.fromkeys(items))
