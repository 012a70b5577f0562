"""Whether a finished call has in one argument what its order says is another one, or whose it is.

Looks at a call that may change something, as `founded` does, which calls it: how the arguments were found does not
count here, only what stands beside each in the order.
"""

from collections.abc import Iterator
from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.ties import is_called_another, is_of_people, own_nouns, told_leads
from treadle.models.offline.plan.toolbox import KnownTool, Param

_TO = word_set("to into onto from with")
# A thing is assigned to a place as well as a place to a thing.
_EITHER_WAY = word_set("assign allocate link connect match pair map attach allot")


def crossed(clause: Clause, tool: KnownTool, arguments: dict[str, Any]) -> list[str]:
    """The arguments that went where an order does not have them.

    Args:
        clause: the order.
        tool: the tool that is to be called.
        arguments: what it is to be called with.
    """
    given = [(param, text) for param in tool.params if isinstance(text := arguments.get(param.name), str)]
    quoted = {param.name for param, text in given if is_quoted(clause, clause.text.find(text))}
    free = {p.name for p, _ in given if fits.is_free_text(p) and parts(p.name) != ("name",)}
    found = [text for param, text in given if param.name in free - quoted] if quoted - free else []
    for param, _ in (each for each in given if each[0].choices):
        # Where the other argument is a choice as well, nothing says which is which.
        found += [text for other, text in given if not other.choices and text.lower() in param.choices]
    placed = [(param, value) for param, text in given if (value := _written(clause, text)) is not None]
    for param, value in placed:
        crossing = is_called_another(tool, param, value, clause) or _is_whose_it_is(clause, tool, param, value)
        if crossing or (len(arguments) == 1 and _is_where_to(clause, tool, param, value)):
            found.append(value.text)
    return found + list(_either_way(clause, tool, placed))


def is_quoted(clause: Clause, start: int) -> bool:
    """Whether what stands at a place is a part of a quotation."""
    return any(value.kind == "quoted" and value.start <= start < value.end for value in clause.values)


def _written(clause: Clause, text: str) -> Value | None:
    """The one value of an order that an argument is."""
    same = [value for value in clause.values if value.text == text and value.kind != "quoted"]
    return same[0] if len(same) == 1 else None


def _is_whose_it_is(clause: Clause, tool: KnownTool, param: Param, value: Value) -> bool:
    """Whether a value is whose the thing is that a parameter is: "the role of admin to user 7" makes no one an
    admin."""
    named = clause.words_before(value.start, 2)[:1] == ("of",) and _is_behind_its_noun(clause, param, value)
    return named and clause.words_after(value.end, 1) == ("to",) and "of" not in told_leads(tool, param)


def _is_where_to(clause: Clause, tool: KnownTool, param: Param, value: Value) -> bool:
    """Whether a value is whom the thing goes to that a parameter is: "Release the berth to Orion"."""
    led, told = next(iter(clause.words_before(value.start, 1)), ""), told_leads(tool, param)
    strange = led in _TO and bool(told) and led not in told and not fits.direction(param)
    return strange and _is_behind_its_noun(clause, param, value)


def _is_behind_its_noun(clause: Clause, param: Param, value: Value) -> bool:
    """Whether a preposition parts a value from the noun of its parameter."""
    noun = (*clause.words_before(value.start, 2), "", "")[1]
    return noun != clause.opening and stem(noun) in own_nouns(param)[-1:]


def _either_way(clause: Clause, tool: KnownTool, placed: list[tuple[Param, Value]]) -> Iterator[str]:
    """Two mere names of which one is assigned to the other, where neither is called what it is."""
    if clause.opening not in _EITHER_WAY or len(placed) != 2 or len({value.kind for _, value in placed}) == 1:
        return
    (one, this), (other, that) = placed
    told = {stem(word) for each in (this, that) for word in clause.words_before(each.start, 1)}
    if not told & {*own_nouns(one), *own_nouns(other)} and not any(is_of_people(param) for param in (one, other)):
        yield from (this.text, that.text)
