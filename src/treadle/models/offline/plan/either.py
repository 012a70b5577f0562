"""Two values of a clause that fit two parameters either way, so that nothing says which is which.

Called by `arguments`.
"""

import itertools
import re
from collections.abc import Sequence

from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.plan.toolbox import Param

# Where a value stands in the clause alone makes no more of a difference than that.
_NO_DIFFERENCE = 0.15


def which_is_which(
    given: Sequence[tuple[Param, Value]],
    scored: Sequence[tuple[float, Param, Value]],
    clause: Clause,
    ordered: bool = False,
) -> tuple[Value, Value, Param, Param] | None:
    """Two values that two parameters were given, where they fit as well the other way round; None if there are none.

    Of "book a space at North for KA-77" nothing says whether North is the lot or the licence plate.

    Args:
        given: the values that were handed out.
        scored: how well each value fits each parameter.
        clause: where they stand.
        ordered: whether something is changed by them.
    """
    fit = {(param.name, value.start): score for score, param, value in scored}
    texts = [(param, value) for param, value in given if param.shape == "text" and param.required]
    for at, (first, one) in enumerate(texts):
        for second, other in texts[at + 1 :]:
            taken = fit[first.name, one.start] + fit[second.name, other.start]
            turned = fit.get((first.name, other.start), 0.0), fit.get((second.name, one.start), 0.0)
            if all(turned) and not _says_by_whom(clause, one, other) and sum(turned) >= taken - _NO_DIFFERENCE:
                return one, other, first, second
    numbers = [(param, value) for param, value in given if param.shape == "number"]
    for (first, one), (second, other) in itertools.combinations(numbers, 2):
        # Nothing says which is which of "12 and 3", but where the parameters are as good as the same: `a` and `b`.
        left, right = sorted((one, other), key=lambda value: value.start)
        joined = re.fullmatch(r"\s*(?:,|&|and|,\s*and)\s*", clause.text[left.end : right.start], re.IGNORECASE)
        turned = fit.get((first.name, other.start), 0.0), fit.get((second.name, one.start), 0.0)
        taken = fit[first.name, one.start] + fit[second.name, other.start]
        beside = joined or not clause.text[left.end : right.start].strip()
        if ordered and beside and _unnumbered(first) != _unnumbered(second):
            # "Set limit 4711 500": a word before both is not for one of them.
            return one, other, first, second
        # Of a change it is not enough which was said first: "Bid 300 on 100".
        if (
            (joined or (ordered and sum(turned) >= taken))
            and all(turned)
            and _unnumbered(first) != _unnumbered(second)
            and sum(turned) >= taken - _NO_DIFFERENCE
        ):
            return one, other, first, second
    return None


def _unnumbered(param: Param) -> tuple[str, ...]:
    return tuple(noun.rstrip("0123456789") for noun in param.nouns)


def _says_by_whom(clause: Clause, one: Value, other: Value) -> bool:
    """Whether the words say what something is done to, and by or for whom: "Adopt Mia for Eva", "of Mia by Eva"."""
    first, second = sorted((one, other), key=lambda value: value.start)
    led = clause.words_before(second.start, 1)
    done_to = sum(token.end <= first.start for token in clause.tokens) == 1
    return led == ("by",) or (done_to and led in (("for",), ("with",)))
