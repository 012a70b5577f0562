"""Whether a clause may ask something of the records that a tool tells of, before it has told them.

Its form says that it asks of many, and each of its words may be a column or a value of one. Called by `records`.
"""

from collections.abc import Collection, Sequence

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.meaning import is_turning, opposites_of
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.superlatives import MADE, find_superlatives, measures_of_deed
from treadle.models.offline.grammar.words import Token, is_function_word, is_verb, stem
from treadle.models.offline.plan.structures import overlaps


def may_be_reckoned(clause: Clause, nouns: Collection[str], used: Sequence[tuple[int, int]], loosely: bool) -> bool:
    """Whether a clause asks something of many records, and has no word that could not be a column or a value of one.

    Args:
        clause: the clause.
        nouns: the stems of the nouns for the records.
        used: the stretches that would go into the arguments of the call that returns them.
        loosely: whether a condition is enough, and nothing has to be worked out.
    """
    text = clause.text
    counted = [match.span() for match in many.HOW_MANY.finditer(text)]
    said = counted + [match.span() for form in many.FORMS for match in form.finditer(text)]
    said += [match.span() for match in many.NUMBERED.finditer(text) if stem(match[1]) in {*nouns, "item"}]
    said += [match.span() for match in many.ORDINAL.finditer(text) if stem(match[2]) in {*nouns, "item"}]
    said += [(each.start, each.end) for each in find_superlatives(text)]
    listing = many.LISTING.match(text) is not None and loosely
    if many.ASKING.match(text) is None or clause.is_yes_or_no or not (said or listing) or many.SIGNS.search(text):
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
    plain = all(
        _is_open(clause, t) or t.stem in nouns or _leads(clause, t, starts) or _is_so(clause, t, nouns) for t in free
    )
    # What all are counted by, another rule tells.
    counts = said == counted
    named = [t for t in free if t.low not in many.FILLERS and t.stem not in nouns and t.low not in many.MANY_PEOPLE]
    return plain and (bool(named) or not counts)


def _is_open(clause: Clause, token: Token) -> bool:
    """Whether a word may be a column, or a value of one, or holds a sentence together."""
    if many.is_own(clause, token) or many.is_written_large(token):
        return True
    if token.low in ("was", "were"):
        timed = any(value.period is not None for value in clause.values) or many.FIRST.search(clause.text) is not None
        return timed or {stem(word) for word in clause.words_after(token.end, 1)} <= MADE
    if (
        token.low in many.FILLERS
        or token.stem in MADE
        or token.low in ("not", "per", "than")
        or many.works(clause, token)
        or measures_of_deed(token.low)
    ):
        return True
    if token.text[0].isdigit() or token.low in many.MANY_PEOPLE:
        return token.text.isdigit() or token.low in many.MANY_PEOPLE
    return not (is_turning(token.text) or is_function_word(token.text) or is_verb(token.text))


def _is_so(clause: Clause, token: Token, nouns: Collection[str]) -> bool:
    """Whether a word says what records are, as "open" in "Which orders are open?", though it may be a verb."""
    after = [each.stem for each in clause.tokens if each.start >= token.end][:1]
    before = next((w for w in clause.words_before(token.start, 2) if w not in ("still", "currently", "now")), "")
    being = before in ("is", "are", "been", "not", "the", "total", "average", "mean", "combined")
    led = token.low == "to" and before.endswith("ed")
    return led or (not is_turning(token.text) and (being or bool(set(after) & set(nouns))))


def _leads(clause: Clause, token: Token, starts: Sequence[int]) -> bool:
    """Whether a word only leads what goes into the call: "from Berlin"."""
    return token.low in many.PLACING and any(
        clause.text[token.end : start].strip() == "" for start in starts if start >= token.end
    )
