"""Whether a clause may ask something of the records that a tool tells of, before it has told them.

Its form says that it asks of many, and each of its words may be a column or a value of one. Called by `records`.
"""

from collections.abc import Collection, Sequence

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import is_turning, opposites_of
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.superlatives import MADE, find_superlatives
from treadle.models.offline.grammar.words import Token, is_function_word, stem
from treadle.models.offline.plan.structures import overlaps

_OPEN = word_set("not but per than other except excluding was were to from")


def may_be_reckoned(clause: Clause, nouns: Collection[str], used: Sequence[tuple[int, int]]) -> bool:
    """Whether a clause asks something of records, and has no word that could not be a column or a value of one.

    Args:
        clause: the clause.
        nouns: the stems of the nouns for the records, and of what else a tool says of them.
        used: the stretches that would go into the arguments of the call that returns them.
    """
    text = clause.text
    counted = [match.span() for match in many.HOW_MANY.finditer(text)]
    said = counted + [match.span() for form in many.FORMS for match in form.finditer(text)]
    said += [match.span() for match in many.NUMBERED.finditer(text) if stem(match[1]) in {*nouns, "item"}]
    said += [match.span() for match in many.ORDINAL.finditer(text) if stem(match[2]) in {*nouns, "item"}]
    said += [(each.start, each.end) for each in find_superlatives(text)]
    if not many.asks(clause):
        return False
    if any(overlaps(*match.span(), used) for form in (many.BOUND, many.RANGE) for match in form.finditer(text)):
        # One end of it would go into the call.
        return False
    if any({stem(word) for word in opposites_of(token.low)} & set(nouns) for token in clause.tokens):
        return False
    forms = (many.BOUND, many.RANGE, many.LACKING, many.HOW_MUCH, *((many.BETWEEN,) if many.APART.search(text) else ()))
    said += [match.span() for form in forms for match in form.finditer(text)]
    lacking = [match.end() for match in many.LACKING.finditer(text)]
    # "Stops" is no verb in "without stops".
    said += [(token.start, token.end) for token in clause.tokens if token.start in lacking]
    spans = [*used, *said]
    free = [token for token in clause.tokens if not overlaps(token.start, token.end, spans)]
    starts = [start for start, _ in used]
    plain = all(_is_open(clause, t) or t.stem in nouns or _leads(clause, t, starts) for t in free)
    # What all are counted by, another rule tells.
    counts = said == counted
    named = [t for t in free if t.low not in many.FILLERS and t.stem not in nouns and t.low not in many.MANY_PEOPLE]
    return plain and (bool(named) or not counts)


def _is_open(clause: Clause, token: Token) -> bool:
    """Whether a word may be a column, or a value of one, or holds a sentence together."""
    if many.is_own(clause, token) or many.is_written_large(token):
        return True
    if token.low in many.FILLERS | many.ASKED | _OPEN or token.stem in MADE or token.low.endswith(("n't", "n’t")):
        return True
    if token.text[0].isdigit():
        return token.text.isdigit()
    return not (is_turning(token.text) or is_function_word(token.text))


def _leads(clause: Clause, token: Token, starts: Sequence[int]) -> bool:
    """Whether a word only leads what goes into the call: "from Berlin"."""
    return token.low in many.PLACING and any(
        clause.text[token.end : start].strip() == "" for start in starts if start >= token.end
    )
