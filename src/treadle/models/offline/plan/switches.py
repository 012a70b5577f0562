"""Parameters that are true or false, as a clause says what they are about, or denies it.

Called by `arguments`.
"""

import re

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import is_negation
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import is_function_word, parts, stem
from treadle.models.offline.plan.toolbox import Param

# "Turn on the light", "switch the light in the hall off".
_TURNED = re.compile(
    r"^\W*(?:please |now )?(turn|switch|put|set)\b"
    r"(?:\s+(on|off)\b(?=\s+[a-z])|[^.?!]*?\s(on|off)(?=(?: again)?(?:,? please)?\W*$|\s+(?:in|at|of)\b))",
    re.IGNORECASE,
)
_FROM_TO = re.compile(r"\bfrom (?:on to off|off to on)\b", re.IGNORECASE)
_INCLUDING = word_set("include includes including included with counting plus and also")
_HAVING = word_set("has have is with include includes including only show")


def switched(param: Param, clause: Clause, ordered: bool = False) -> tuple[bool, list[tuple[int, int]]] | None:
    """True where a clause names what a parameter is about, false where it denies it, with the stretches that say so;
    None if it does not speak of it.

    Args:
        param: the parameter.
        clause: the clause.
        ordered: whether the tool changes something, so that what is denied is how it is to be.
    """
    if {"on", "off"} & set(parts(param.name)):
        return _turned(param, clause)
    if (opposite := _opposite(param, clause)) is not None:
        return opposite
    words = [stem(word) for word in parts(param.name) if not is_function_word(word) and word not in _HAVING]
    said = [token for token in clause.tokens if set(map(stem, parts(token.text))) & set(words)]
    if not words or {stem(word) for token in said for word in parts(token.text)} != set(words):
        return None
    before = [token for token in clause.tokens if token.end <= said[0].start][-3:]
    if {"include", "including", "with"} & set(parts(param.name)) and not any(t.low in _INCLUDING for t in before):
        return None
    outside = re.search(r"\bout of (?:the )?$", clause.text[: said[0].start], re.IGNORECASE)
    denied = next((t for t in before if is_negation(t.text) or (outside and t.start == outside.start())), None)
    if denied is not None and denied is clause.tokens[0]:
        # "Never list the done tasks" forbids to list them.
        return None
    # Left out and false may be the same to what lists things: "no" is then not what it does.
    if denied is not None and not (ordered and denied.low == "without") and param.schema.get("default", None) is False:
        return None
    led = [token for token in before if token.low in _INCLUDING and set(parts(param.name)) & _HAVING]
    return denied is None, [(token.start, token.end) for token in [*said, *led, *([denied] if denied else [])]]


def _opposite(param: Param, clause: Clause) -> tuple[bool, list[tuple[int, int]]] | None:
    """False where a clause has the opposite of a parameter's only word, as "unread" is of `read`; not where that is the
    default as well, as leaving it out may mean something else to the tool."""
    words = parts(param.name)
    said = [token for token in clause.tokens if len(words) == 1 and token.low == f"un{words[0]}"]
    if not said or param.schema.get("default", None) is False:
        return None
    return False, [(said[0].start, said[0].end)]


def _turned(param: Param, clause: Clause) -> tuple[bool, list[tuple[int, int]]] | None:
    """The same for what is itself called "on": whether something is to be turned on, or off."""
    match = _TURNED.match(clause.text)
    both = {token.low for token in clause.tokens} >= {"on", "off"} and _FROM_TO.search(clause.text) is None
    if match is None or both or any(is_negation(token.text) for token in clause.tokens):
        return None
    said = 2 if match[2] else 3
    return match[said].lower() in parts(param.name), [match.span(1), match.span(said)]
