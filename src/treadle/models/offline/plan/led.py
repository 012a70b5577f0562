"""Plain words that a clause leads as the tool does: "weekly" of "to weekly", and the reason that is one of a choice.

Called by `arguments`.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.english import PERSON_WORDS, word_set
from treadle.models.offline.grammar.meaning import is_calendar_name
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import is_function_word, stem
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.ties import PEOPLE, told_leads
from treadle.models.offline.plan.toolbox import KnownTool, Param

_LEADS = word_set("to from in into on onto")
_SOMEBODY = frozenset(stem(word) for word in sorted(PERSON_WORDS | PEOPLE))
# Nothing is called so.
NO_NAMES = word_set(
    "all everything everyone everybody both any nothing none nobody anything someone somebody anybody anyone something "
    "whoever whatever whichever today tomorrow yesterday now later soon "
    "time once full part half zero place here there trash bin normal default max maximum min minimum off"
)
_ENDS = r"(?=[?.!]*$|,? (?:and|with|at|on|for|from|as|by)\b)"


def fill_led(tool: KnownTool, params: Sequence[Param], clause: Clause, out: Filling) -> None:
    """Fills what is still missing with the one plain word that is led as the tool's description leads a parameter:
    "weekly" of "to weekly", where an address is subscribed "to a list".

    Args:
        tool: the tool.
        params: its parameters that are open.
        clause: the clause.
        out: takes the arguments.
    """
    for param in params:
        leads = told_leads(tool, param) & _LEADS
        if not leads or not param.required or param.enum or fits.is_free_text(param) or fits.is_date(param):
            continue
        if fits.is_time(param) or fits.is_unit(param) or fits.direction(param) or {*param.nouns} & _SOMEBODY:
            continue
        form = rf"\b(?:{'|'.join(sorted(leads))}) (?:the )?([a-z][a-z-]+){_ENDS}"
        said = [match for match in re.finditer(form, clause.text) if not overlaps(*match.span(1), out.used)]
        said = [match for match in said if not is_function_word(match[1]) and not is_calendar_name(match[1])]
        if len(said) == 1 and said[0][1] not in NO_NAMES:
            out.arguments[param.name] = said[0][1]
            out.used.append(said[0].span(1))
            out.given.append((param, Value(said[0][1], "phrase", *said[0].span(1))))


def given_reason(param: Param, clause: Clause) -> str | None:
    """The choice that is the reason behind an order: "wind" of "because of wind"."""
    reason = re.sub(r"^(?:of )?(?:(?:the|an?) )?", "", clause.reason.lower())
    if not reason or "reason" not in param.stems or reason not in param.choices:
        return None
    return next(str(each) for each in param.enum if str(each).lower() == reason)
