"""Follow-ups that take something away: "now without the period" is the question before it, less what it said of that,
and "without USD" is it without what is in USD.

Called by `followup`.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import stem
from treadle.models.offline.plan.conditions import conditions
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.toolbox import Toolbox
from treadle.models.offline.plan.transcript import Exchange

_DROPS = re.compile(
    r"^\W*(?:(?:and|but|now|then|ok|okay|please|again|the same|same)\b\W*)*without (?:the |a |any )?"
    r"(\w+)(?: (?:filter|condition|restriction))?(?:,? please)?\W*$",
    re.IGNORECASE,
)
_LED = re.compile(r"(?:,?\s*\b(?:in|for|of|at|on|and|with|from|during|only)\b)?(?:\s+(?:the|our))?\s*$", re.IGNORECASE)
_PERIODS = frozenset(stem(word) for word in word_set("period month year quarter day date time week"))


def dropped(question: str) -> str | None:
    """What a follow-up takes away, if it does no more than that."""
    match = _DROPS.match(question)
    return match[1] if match is not None else None


def without(earlier: Clause, field: str, made: Sequence[Exchange], box: Toolbox) -> str:
    """The earlier question less its condition on a field; empty if it has none that is told apart."""
    spans = [(said.start, said.end) for said in conditions(earlier, (field.lower(),), [])]
    if not spans and stem(field) in _PERIODS:
        spans = [(value.start, value.end) for value in earlier.values if value.period is not None]
    if not spans:
        spans = [span for each in made for text in _given(each, field, box) if (span := _place(earlier, text))]
    if len(set(spans)) != 1:
        return ""
    start, end = spans[0]
    behind = re.match(r"\s+and\b\s*", earlier.text[end:], re.IGNORECASE)
    led = _LED.search(earlier.text[:start])
    if behind is not None:
        return earlier.text[:start] + earlier.text[end + behind.end() :]
    return earlier.text[: led.start() if led is not None else start] + earlier.text[end:]


def leaving_out(earlier: Clause, said: str, question: str, planner: Planner) -> str:
    """The earlier question without the rows of a value that it does not speak of: "without USD"; empty if that is none,
    or nobody can say of what."""
    valued = any(value.text == said for value in planner.box.read(question, planner.today).values)
    if not valued or stem(said) in {token.stem for token in earlier.tokens}:
        return ""
    text = f"{earlier.text.rstrip(' ?.!')} without {said}"
    return text if planner.spare_words(text) == 0 else ""


def _given(made: Exchange, field: str, box: Toolbox) -> list[str]:
    """The texts that a call was given for what a parameter is named after the field."""
    tool = box.named(made.tool)
    named = [p.name for p in tool.params if stem(field) in (*p.stems, *p.nouns)] if tool is not None else []
    return [text for name in named if isinstance(text := made.arguments.get(name), str)]


def _place(earlier: Clause, text: str) -> tuple[int, int] | None:
    match = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", earlier.text, re.IGNORECASE)
    return match.span() if match is not None else None
