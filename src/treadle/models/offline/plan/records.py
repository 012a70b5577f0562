"""What is asked of the records that a tool tells of: which tool that is, whether it has been asked, and the reckoning.

Called by `planner`. `reckoning` reads the clause, once there is a result; before that only its form and its nouns are
known, which are enough for a call of a tool that just reads.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.english import PLAIN_VERBS, TELLING_VERBS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, singular, stem, tokens
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.arguments import fill
from treadle.models.offline.plan.choice import is_final
from treadle.models.offline.plan.naming import is_telling
from treadle.models.offline.plan.outcome import Call, Outcome
from treadle.models.offline.plan.reckonable import may_be_reckoned
from treadle.models.offline.plan.reckoning import reckoned
from treadle.models.offline.plan.related import told_by_another
from treadle.models.offline.plan.results import only_list, rows_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.table import record_of, table_of
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox
from treadle.models.offline.plan.transcript import Exchange
from treadle.models.offline.plan.vocabulary import Vocabulary

_PAGING = word_set("limit page offset top max maximum size count cursor first per n k results")
_BOUNDS = word_set("max maximum")
_MOST_READ = 3
TELLS = frozenset(f"{verb}es" if verb.endswith(("s", "h")) else f"{verb}s" for verb in TELLING_VERBS)
WHOLE: tuple[Any, ...] = ("all", "any", "", None, False, [])


@dataclass(frozen=True)
class _Asked:
    """A tool that may tell of the records, what it is to be called with, and the stretches that went into that."""

    tool: KnownTool
    arguments: Json
    used: Sequence[tuple[int, int]]


def of_records(
    clause: Clause, box: Toolbox, vocabulary: Vocabulary, exchanges: Sequence[Exchange], fresh: bool
) -> Outcome | None:
    """The answer that records give to a clause, or the call that may tell them; None if there is neither.

    Args:
        clause: the whole question.
        box: the tools offered.
        vocabulary: the names known to be valid.
        exchanges: the calls made for the question so far.
        fresh: whether nothing else can be planned for the clause, so that a call is worth it.
    """
    if not many.asks(clause) or any(clause.opening in (tool.change or ()) for tool in box.tools):
        return None
    able = [asked for tool in box.tools if (asked := _asked(tool, clause, box, vocabulary)) is not None]
    told = [outcome for asked in able if (outcome := _told(asked, clause, exchanges, fresh)) is not None]
    if told or not fresh:
        # A list and the tool that tells of one of it say the same; one of them may say why as well.
        return max(told, key=_told_of) if len({_said(outcome) for outcome in told}) == 1 else None
    able = [asked for asked in able if _may_tell(asked, clause)]
    said = {token.stem for token in clause.tokens}
    named = [asked for asked in able if said & {*asked.tool.name_stems, *_output_nouns(asked.tool)}]
    best = named or able
    calls = [Call(each.tool.name, each.arguments) for each in best if _made(each, exchanges) is None]
    if not calls or len(best) > _MOST_READ:
        return None
    return Outcome(clause, calls=calls, tools=[each.tool for each in best])


def _asked(tool: KnownTool, clause: Clause, box: Toolbox, vocabulary: Vocabulary) -> _Asked | None:
    """How a tool would be asked for its records; None if it may change something, or tell only some of them."""
    if tool.may_change or is_final(tool) or any(p.shape in ("filters", "mapping", "names") for p in tool.params):
        return None
    if any(fits.is_free_text(param) for param in tool.required):
        return None
    said = {token.stem for token in clause.tokens}
    if not all(param.required or _leaves_all(param, tool, said) for param in tool.params):
        return None
    if not tool.required:
        return _Asked(tool, {}, ())
    told, named = parts(tool.summary), parts(tool.name)
    plain = tool.spec.changes is False or named[0] in PLAIN_VERBS or is_telling(told) or told[:1] == named[:1]
    plain = plain or bool(tool.summary and (tool.spec.output_schema or {}).get("type") in ("object", "array"))
    if not (plain or tool.is_a_thing or said & {*tool.name_stems}):
        # Of `weigh` nothing is said that tells, and nobody asks it by the name of a truck.
        return None
    if (tool.spec.output_schema or {}).get("type", "object") not in ("object", "array"):
        # A figure has no fields.
        return None
    filling = fill(tool, clause, vocabulary, box)
    spoken = not told_by_another(clause, tool, filling.arguments, box.tools, ())
    whole = spoken and not (filling.missing or filling.unclear or filling.spread or filling.doubtful or filling.unknown)
    given = filling.arguments.keys() == {param.name for param in tool.required}
    return _Asked(tool, filling.arguments, filling.used) if whole and given else None


def _may_tell(asked: _Asked, clause: Clause) -> bool:
    """Whether the records of a tool may have what a clause asks of them: of a tool that is told something only where
    the clause asks, and gives it more than a guess."""
    given = [v for v in clause.values if any(a <= v.start and v.end <= b for a, b in asked.used)]
    nouns = {noun for param in asked.tool.required for noun in param.nouns}
    # "The folder docs" is called so.
    spans = [(a, b) for a, b in asked.used if any(stem(word) in nouns for word in clause.words_before(a, 1))]
    # So is the large one of "the large kiln", where that is offered to choose from.
    things = nouns.union(asked.tool.name_stems)
    chosen = [(a, b) for a, b in asked.used if clause.text[a:b].lower() in asked.tool.choices]
    spans += [(a, b) for a, b in chosen if any(stem(word) in things for word in clause.words_after(b, 1))]
    having = many.HAVING.match(clause.text)
    spans += [(a, b) for a, b in asked.used if having is not None and clause.text[a:b] in having.groups()]
    named = [a for a, _ in dict.fromkeys(spans) if all(a != v.start for v in given)]
    asking = many.QUESTION.search(clause.text) is not None or clause.is_yes_or_no
    sure = asking and len(given) + len(named) >= len(asked.arguments)
    # Of "from 2021 to 2023" a tool of one year is told a half.
    bounds = [match.span() for form in (many.BOUND, many.RANGE, many.HELD) for match in form.finditer(clause.text)]
    spare = [v for v in clause.values if v.kind in ("number", "period") and v not in given]
    sure = sure and all(overlaps(v.start, v.end, bounds) for v in spare)
    return (sure or not asked.arguments) and may_be_reckoned(clause, asked.tool.told, asked.used)


def nouns_of(tool: KnownTool) -> frozenset[str]:
    """The stems of the nouns for the records that a tool tells of: its name, and what its description says first that
    there are several of, "lessons" of "The week's lessons of a class"."""
    first = next((t for t in tokens(tool.summary) if singular(t.low) != t.low and t.low not in TELLS), None)
    return frozenset([*tool.name_stems, *([first.stem] if first is not None else [])])


def _leaves_all(param: Param, tool: KnownTool, said: Collection[str]) -> bool:
    """Whether a call without a parameter leaves nothing out: without a `max_price`, but not without a `max_items`. Of a
    price that is spoken of nothing but the bound may be known."""
    words = set(parts(param.name))
    figure = words - _BOUNDS
    paging = not figure or figure & _PAGING or any(stem(word) in {*tool.name_stems, *said} for word in figure)
    return param.schema.get("default") in WHOLE and not (paging if words & _BOUNDS else words & _PAGING)


def _output_nouns(tool: KnownTool) -> frozenset[str]:
    return frozenset(word for output in tool.outputs for word in output.stems)


def _made(asked: _Asked, exchanges: Sequence[Exchange]) -> Exchange | None:
    return next((e for e in reversed(exchanges) if e.tool == asked.tool.name and e.planned == asked.arguments), None)


def _said(outcome: Outcome) -> tuple[Any, ...]:
    """What an answer tells, whichever tool told it; what was worked out is no other's."""
    if outcome.reckoning is None or outcome.reckoning[1].operation != "values":
        return (id(outcome),)
    rows, asked = outcome.reckoning[1].rows, outcome.reckoning[1].asked
    asked = asked[:1] if outcome.clause.is_yes_or_no else asked
    return tuple((column.path, *(str(column.values[row]) for row in rows)) for column in asked)


def _told_of(outcome: Outcome) -> int:
    return 0 if outcome.reckoning is None else len(outcome.reckoning[1].asked)


def _told(asked: _Asked, clause: Clause, exchanges: Sequence[Exchange], fresh: bool) -> Outcome | None:
    """What the records that a tool told say to a clause; the one that it was asked for only where nothing else does."""
    made = _made(asked, exchanges)
    if made is None or made.failed:
        return None
    nouns = own = nouns_of(asked.tool)
    if not only_list(made.result):
        nouns = frozenset(stem(word) for name, _ in rows_of(made.result) for word in parts(name))
    record = record_of(made.result, asked.arguments or {"": " ".join(parts(asked.tool.name))}) if fresh else None
    leads = frozenset(asked.tool.name_stems).union(*(param.nouns for param in asked.tool.params))
    for table, called in ((table_of(made.result), nouns), (record, own)):
        reckoning = reckoned(clause, table, called, asked.used, leads) if table is not None else None
        if table is not None and reckoning is not None:
            return Outcome(clause, done=[made], tools=[asked.tool], used=list(asked.used), reckoning=(table, reckoning))
    return None
