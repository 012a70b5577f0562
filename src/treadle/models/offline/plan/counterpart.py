"""What a follow-up's word takes the place of in the question before it: "and for Bonn?" that of "Oslo".

Called by `followup`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar.currencies import money_in
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import closest, is_function_word, likeness
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import Param
from treadle.models.offline.plan.transcript import Exchange

_BETWEEN = word_set("of is to at")
_TIED = re.compile(r"[\s:=]*(?:(?:of|is|to|at)\s+)?[$€£¥]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a text and what it is replaced by."""

    start: int
    end: int
    text: str


def counterpart(
    earlier: Clause, follow: Clause, value: Value, made: Sequence[Exchange], planner: Planner
) -> Edit | None:
    """What `value` takes the place of: a value that looks the same, or a name that was looked up."""
    if value.kind != "phrase":
        names = _names_like(value, made, planner)
        same = [each for each in earlier.values if each.kind == value.kind and _is_money(each) == _is_money(value)]
        same = [each for each in same if not names or closest(each.text, names) is not None]
        if same:
            spans = [(other.start, other.end) for other in reversed(same)]
            return _led_alike(earlier, follow, value, spans)
        if value.kind in ("number", "period", "email"):
            return None
    found: list[tuple[int, int]] = []
    for text in _names_given(value, made, planner):
        for size in (1, 2, 3):
            for place in range(len(earlier.tokens) - size + 1):
                start, end = earlier.tokens[place].start, earlier.tokens[place + size - 1].end
                if likeness(earlier.text[start:end], text) >= 0.84 and not is_function_word(earlier.tokens[place].text):
                    found.append((start, end))
    return _led_alike(earlier, follow, value, found)


def options_set(
    earlier: Clause, follow: Clause, made: Sequence[Exchange], planner: Planner, used: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Where a follow-up names an option that nothing was said of before and tells its number, as "with a tolerance of
    5" does: that takes the place of no number."""
    calls = [(tool, exchange.arguments) for exchange in made if (tool := planner.box.named(exchange.tool)) is not None]
    calls = calls or [(tool, {}) for tool in planner.box.tools]
    options = {
        w for tool, given in calls for p in tool.params if _is_option(p) and p.name not in given for w in p.nouns
    }
    options -= {token.stem for token in earlier.tokens}
    found: list[tuple[int, int]] = []
    for value in (each for each in follow.values if each.kind == "number" and not overlaps(each.start, each.end, used)):
        before = [each for each in follow.tokens if each.end <= value.start and each.low not in _BETWEEN][-1:]
        if before and before[0].stem in options and _TIED.fullmatch(follow.text[before[0].end : value.start]):
            found.append((before[0].start, value.end))
    return found


def _is_option(param: Param) -> bool:
    return not param.required and param.shape == "number"


def _names_like(value: Value, made: Sequence[Exchange], planner: Planner) -> Sequence[str]:
    """The names of which a value is one, of those that the calls could be given: of a source those of the sources."""
    tools = [tool for exchange in made if (tool := planner.box.named(exchange.tool)) is not None]
    known = [planner.vocabulary.names(param.nouns) for tool in tools for param in tool.params]
    return next((names for names in known if value.text.casefold() in map(str.casefold, names)), ())


def _is_money(value: Value) -> bool:
    """Whether a value is a currency, which takes the place of another one and of nothing else."""
    return any((start, end) == (0, len(value.text)) for start, end, _ in money_in(value.text))


def _names_given(value: Value, made: Sequence[Exchange], planner: Planner) -> list[str]:
    """The texts that the calls were given which `value` may replace: not one of known names, if it is like none."""
    given: list[str] = []
    for exchange in reversed(made):
        tool = planner.box.named(exchange.tool)
        nouns = {param.name: param.nouns for param in tool.params} if tool is not None else {}
        for name, text in exchange.arguments.items():
            known = planner.vocabulary.names(nouns.get(name, ()))
            if isinstance(text, str) and (not known or closest(value.text, known) is not None):
                given.append(text)
    return given


def _led_alike(earlier: Clause, follow: Clause, value: Value, spans: Sequence[tuple[int, int]]) -> Edit | None:
    """The first of the stretches, but one with the same "from" or "to" before it where `value` has one: "and to
    inches?" asks for other units to convert to."""
    led = _way(follow, value.start)
    fitting = [span for way in (led, "") for span in spans if _way(earlier, span[0]) == way]
    start, end = next(iter(fitting if led else spans), (0, 0))
    return Edit(start, end, value.text) if end else None


def _way(clause: Clause, start: int) -> str:
    before = " ".join(clause.words_before(start, 1))
    return {"from": "from", "to": "to", "into": "to"}.get(before, "")
