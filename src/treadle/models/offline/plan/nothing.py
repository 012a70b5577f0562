"""When nothing was found: what that says, where it is not plain what the words that were looked for are.

A book that is no author's may well be a title: "Do you have Dune?" asked of authors finds nothing, and the library has
it. Called by `planner` once there is a result.
"""

from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import stem
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.arguments import fill
from treadle.models.offline.plan.outcome import Trouble
from treadle.models.offline.plan.results import is_nothing, number_of, rows_of
from treadle.models.offline.plan.structures import content_stems
from treadle.models.offline.plan.ties import how_plainly
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox
from treadle.models.offline.plan.twice import noun_of
from treadle.models.offline.plan.vocabulary import Vocabulary

_MAKERS = frozenset(
    stem(word)
    for word in word_set(
        "author writer composer director painter artist singer maker brand manufacturer editor photographer designer "
        "architect inventor publisher speaker"
    )
)


# "French wines" are of a country that is called otherwise.
_COUNTRY = frozenset(stem(word) for word in word_set("country nation nationality region continent origin"))
_LEADING = word_set("from in of for to at by within across country nation region continent origin")


def found_for_want_of(
    tool: KnownTool, clause: Clause, result: Any, box: Toolbox, vocabulary: Vocabulary
) -> Trouble | None:
    """Why that nothing was found is no answer; None if it is one, or something was found.

    Args:
        tool: the tool that was asked.
        clause: the clause that it was asked for.
        result: what it answered.
        box: all tools offered.
        vocabulary: the names known to be valid.
    """
    if tool.may_change or not is_empty(result):
        return None
    filling = fill(tool, clause, vocabulary, box)
    for param, value in filling.given:
        led = {*clause.words_before(value.start, 1)} & _LEADING
        if _COUNTRY & set(param.nouns) and not led and not vocabulary.names(param.nouns):
            return Trouble(f"“{value.text}” may not be what the {noun_of(param)} is called; as it, nothing was found")
    for param, value in filling.given:
        if param.shape != "text" or param.name not in filling.arguments or value.kind in ("number", "period", "time"):
            continue
        made = fits.led_by(param, value, clause) == "by" and bool(_MAKERS & set(param.nouns))
        own = how_plainly(tool, param, value, clause) + made
        rivals = [p for p in tool.params if p is not param and p.name not in filling.arguments and _takes_names(p)]
        known = vocabulary.names(param.nouns)
        rival = next((p for p in rivals if not known and how_plainly(tool, p, value, clause) >= own), None)
        rival = rival or _elsewhere(tool, value, own, clause, box, vocabulary)
        if rival is not None and rival.nouns != param.nouns:
            return Trouble(
                f"It is not clear whether “{value.text}” is the {noun_of(param)} or the {noun_of(rival)}; as the "
                f"{noun_of(param)}, nothing was found"
            )
    return None


def is_empty(result: Any) -> bool:
    """Whether a result tells of nothing: no row, no field, none of them counted."""
    if isinstance(result, bool):
        return False
    lists = rows_of(result)
    if lists:
        return not any(rows for _, rows in lists) or is_nothing(result)
    return result in (None, "", {}) or number_of(result) == 0


def _takes_names(param: Param) -> bool:
    return param.shape == "text" and not (
        param.enum or param.is_expression or fits.is_date(param) or fits.is_time(param) or fits.is_currency(param)
    )


def _elsewhere(
    tool: KnownTool, value: Value, own: int, clause: Clause, box: Toolbox, vocabulary: Vocabulary
) -> Param | None:
    """What another tool that tells of the same things would take a value for, if that is said no less plainly."""
    stems = content_stems(clause)
    for other in box.tools:
        shared = any(tool.fit(word) >= 1.0 and other.fit(word) >= 1.0 for word in stems)
        if other is tool or other.may_change or not shared:
            continue
        missing = fill(other, clause, vocabulary, box).missing
        for param in other.params:
            able = _takes_names(param) and missing in ([], [param]) and not vocabulary.names(param.nouns)
            if able and how_plainly(other, param, value, clause) >= own:
                return param
    return None
