"""Follow-ups: "and for company 7?", "by account?", "and pears?" become the whole question that they stand for.

The earlier question is rewritten with the parts that the follow-up replaces; then it is planned like any other. Called
by `model`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.models.offline.grammar.question import Clause, Value, phrases, read_clause, split_clauses
from treadle.models.offline.grammar.words import groups_of, is_function_word, likeness
from treadle.models.offline.plan.choice import ChosenTool
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.structures import conditions, groupings, overlaps
from treadle.models.offline.plan.transcript import LONGEST, Exchange, Turn

_LEAD = re.compile(
    r"^\W*(?:(?:and|or|but|then|now|ok|okay|also|so|what about|how about|same (?:thing )?(?:for|with|but)?|the same|"
    r"again|what if it (?:is|were))\b\W*)+",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|they|them|its|their|that one|those|these|he|she|his|her|him|there)\b", re.IGNORECASE)
_BY = re.compile(r"\s*\b(?:by|per)\s+\w+(?:\s*(?:,|and)\s*\w+)*\s*(?=[?.!]?$)", re.IGNORECASE)
_SHORT = 6


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a text and what it is replaced by."""

    start: int
    end: int
    text: str


def effective_question(turns: Sequence[Turn], planner: Planner) -> str:
    """What the last turn asks, with what it leaves to be understood from the turns before it."""
    text = turns[0].question
    for previous, turn in pairwise(turns):
        text = _understood(text, previous.exchanges, turn.question, planner)
    return text


def _understood(earlier: str, exchanges: Sequence[Exchange], question: str, planner: Planner) -> str:
    made = [exchange for exchange in exchanges if not exchange.failed]
    if not made or max(len(earlier), len(question)) > LONGEST:
        return question
    bare = _LEAD.sub("", question).strip()
    clauses = split_clauses(bare)
    if not clauses:
        return question
    subject = next((v for e in reversed(made) for v in e.arguments.values() if isinstance(v, str) and v), None)
    clause = read_clause(clauses[0], planner.today)
    choice = planner.chooser.choose(clause)
    if choice is not None and choice.spoken and not _is_breakdown(clause, choice):
        if subject is None or not any(param.shape == "text" for param in choice.filling.missing):
            return _with_pronoun(question, subject, planner)
        referred = _PRONOUN.sub(subject, bare) if _PRONOUN.search(bare) else f"{bare.rstrip(' ?.!')} of {subject}?"
        return referred
    led = bare != question.strip()
    words = [token for token in clause.tokens if not is_function_word(token.text)]
    if len(clauses) > 1 or not (led or len(clause.tokens) <= _SHORT) or not words:
        return question
    rewritten = _rewritten(read_clause(earlier, planner.today), clause, made, planner)
    return rewritten if rewritten and planner.is_plannable(rewritten) else question


def _with_pronoun(question: str, subject: str | None, planner: Planner) -> str:
    """The question with "it" or "them" replaced by what the last call was about, if a value was taken from the word."""
    match = _PRONOUN.search(question)
    if subject is None or match is None:
        return question
    named = question[: match.start()] + subject + question[match.end() :]
    clause = read_clause(question, planner.today)
    before, after = planner.chooser.choose(clause), planner.chooser.choose(read_clause(named, planner.today))
    if before is None or after is None or before.tool.name != after.tool.name:
        return question
    return named if len(after.filling.arguments) > len(before.filling.arguments) else question


def _is_breakdown(clause: Clause, choice: ChosenTool) -> bool:
    """Whether the clause is no more than "which accounts?" or "by account?"."""
    words = [token for token in clause.tokens if not is_function_word(token.text)]
    opening = clause.tokens[0].low if clause.tokens else ""
    return len(words) <= 2 and opening in ("by", "per", "which", "for") and not choice.filling.arguments


def _rewritten(earlier: Clause, follow: Clause, made: Sequence[Exchange], planner: Planner) -> str:
    edits: list[Edit] = []
    extra: list[str] = []
    used: list[tuple[int, int]] = []
    for said in conditions(follow, (), []):
        text = follow.text[said.values[0].start : said.end]
        there = conditions(earlier, (said.field,), [])
        if there:
            edits.append(Edit(there[0].values[0].start, there[0].end, text))
        else:
            extra.append(f"for {follow.text[said.start : said.end]}")
        used.append((said.start, said.end))
    breakdown = groupings(follow, planner.vocabulary.names(["dimension"]))
    if breakdown:
        by = _BY.search(earlier.text.rstrip("?.! "))
        if by:
            edits.append(Edit(by.start(), by.end(), ""))
        extra.append("by " + " and ".join(breakdown))
    free = [value for value in follow.values if not overlaps(value.start, value.end, used)]
    nouns = () if breakdown else phrases(follow, frozenset(t.stem for t in follow.tokens if groups_of(t.stem)))
    for value in [*free, *(noun for noun in nouns if not overlaps(noun.start, noun.end, used))]:
        place = _counterpart(earlier, value, made)
        if place is None:
            before = follow.words_before(value.start, 1)
            extra.append(f"{before[0] if before and is_function_word(before[0]) else 'for'} {value.text}")
        elif not any(place.start < edit.end and edit.start < place.end for edit in edits):
            edits.append(place)
    if not edits and not extra:
        return ""
    text = earlier.text
    for edit in sorted(edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return " ".join([text.rstrip(" ?.!"), *extra])


def _counterpart(earlier: Clause, value: Value, made: Sequence[Exchange]) -> Edit | None:
    """What `value` takes the place of: a value that looks the same, or a name that was looked up."""
    if value.kind != "phrase":
        same = [other for other in earlier.values if other.kind == value.kind]
        if same:
            return Edit(same[-1].start, same[-1].end, value.text)
        if value.kind in ("number", "period", "email"):
            return None
    given = [text for exchange in reversed(made) for text in exchange.arguments.values() if isinstance(text, str)]
    for text in given:
        for size in (1, 2, 3):
            for place in range(len(earlier.tokens) - size + 1):
                start, end = earlier.tokens[place].start, earlier.tokens[place + size - 1].end
                if likeness(earlier.text[start:end], text) >= 0.84 and not is_function_word(earlier.tokens[place].text):
                    return Edit(start, end, value.text)
    return None
