"""Whether a clause may ask something of the records that a tool tells of, before it has told them.

Each of its words may be a column or a value of one, or is known to `reckoning`. Called by `records`.
"""

from collections.abc import Collection, Sequence

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.degrees import degree_of
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import is_turning, opposites_of
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.superlatives import MADE, find_superlatives
from treadle.models.offline.grammar.words import Token, is_function_word, stem
from treadle.models.offline.plan.orders import PARTICLES
from treadle.models.offline.plan.structures import overlaps

_OPEN = word_set("not but per than between other except excluding was were to from")
_FORMS = (*many.FORMS, many.ORDINAL, many.BOUND, many.RANGE, many.LACKING, many.HELD, many.HOW_MANY, many.HOW_MUCH)


def may_be_reckoned(clause: Clause, told: Collection[str], used: Sequence[tuple[int, int]]) -> bool:
    """Whether a clause asks something of records, and has no word that could not be a column or a value of one.

    Args:
        clause: the clause.
        told: the stems of what the tool says of the records.
        used: the stretches that would go into the arguments of the call that returns them.
    """
    if not many.asks(clause) or any({stem(w) for w in opposites_of(t.low)} & set(told) for t in clause.tokens):
        return False
    said = [match.span() for form in _FORMS for match in form.finditer(clause.text)]
    if any(overlaps(*match.span(), used) for form in (many.BOUND, many.RANGE) for match in form.finditer(clause.text)):
        # One end of it would go into the call.
        return False
    degree = degree_of(clause.text)
    said += [(degree[0][0] - len("how "), degree[0][1])] if degree is not None else []
    spans = [*used, *said, *((each.start, each.end) for each in find_superlatives(clause.text))]
    free = [token for token in clause.tokens if not overlaps(token.start, token.end, spans)]
    return all(_is_open(clause, token) or token.stem in told for token in free)


def _is_open(clause: Clause, token: Token) -> bool:
    """Whether a word may be a column, or a value of one, or holds a sentence together."""
    if many.is_own(clause, token) or many.is_written_large(token) or token.low.endswith(("n't", "n’t")):
        return True
    if token.low == "from" and any(v.period is not None and v.start == token.end + 1 for v in clause.values):
        # It may be on the day, or since then.
        return False
    if token == clause.tokens[-1] and clause.is_yes_or_no and token.low in PARTICLES:
        # "Is Jam sold out?"
        return True
    known = token.low in many.FILLERS | many.ASKED | _OPEN or token.stem in MADE or _opens_when(clause, token)
    return known or not (is_turning(token.text) or is_function_word(token.text))


def _opens_when(clause: Clause, token: Token) -> bool:
    """Whether it is the "did" of "When did Cleo join?", where nobody else does it, nor anything is done to somebody."""
    after = [each for each in clause.tokens if each.start >= token.end and each.low != "the"]
    if token.low != "did" or clause.words_before(token.start, 1) != ("when",) or len(after) < 2:
        return False
    ends = not any(value.end > after[-1].start for value in clause.values)
    return ends and not is_function_word(after[0].text) and sum(v.start >= token.end for v in clause.values) <= 1
