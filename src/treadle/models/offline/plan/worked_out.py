"""Whether a verb by which tools tell things is said of information, from which something is only worked out ("Reverse a
string", "Load a CSV file"), or of a thing that it is done to ("Multiply the shares of a holder").

Called by `commands`.
"""

from treadle.models.offline.grammar.english import MAKING_VERBS, TELLING_VERBS, word_set
from treadle.models.offline.grammar.words import parts, singular, stem
from treadle.models.offline.plan.headings import ARTICLES

_VERBS = (TELLING_VERBS - MAKING_VERBS | {"embed", "tokenise"}) - word_set(
    "select pick choose run use make have do want need wait sleep help route download name draw report say tell "
    "show give read answer track monitor remember recall think ask work greet state collect roll plan quote price test "
    "review audit profile annotate cluster judge navigate drill reason"
)
_INFORMATION = word_set(
    "text string word sentence paragraph phrase number integer digit date json csv xml html yaml markdown url "
    "expression equation formula keyword language sentiment entity vector matrix hash"
)
_OBJECTS = {
    "crawl": word_set("page website webpage site"),
    "scrape": word_set("page website webpage site"),
    "load": word_set("file csv dataset json pdf"),
    "geocode": word_set("address city place location"),
    "filter": word_set("row record result"),
}
_DONE_TO = {
    "solve": word_set("ticket issue case incident complaint dispute task"),
    "validate": word_set("ticket voucher pass badge"),
    "convert": word_set("lead trial prospect visitor"),
    "retrieve": word_set("parcel package luggage shipment pallet"),
}
_ARITHMETIC = word_set("multiply subtract divide")
_MAKING_OTHER = _ARITHMETIC | word_set("reduce shorten expand round reverse flip")
_POWERS = word_set("power square cube mod negate")
_OPERANDS = word_set("value operand argument input n")
_TAKEN = frozenset(
    map(stem, word_set("number value base exponent power modulus dividend divisor operand argument input integer"))
)
_BEHIND = word_set("of for in on at by from to into as with using and or that which per")
_ELSEWHERE = word_set("into onto")
# "Load a dataset to production", "Loads a JSON file as the new configuration"
_AWAY = word_set("to as in on")


def _object(said: tuple[str, ...]) -> tuple[str, ...]:
    """The words between a verb and the first preposition: "a", "random", "number"."""
    end = next((at for at, word in enumerate(said) if at and word in _BEHIND), len(said))
    return said[1:end]


def _is_made_other(verb: str, said: tuple[str, ...]) -> bool:
    """Whether something is of whom or what it is said to be made other: "Reduce the number of seats in a room"."""
    owned = said[len(_object(said)) + 1 :]
    return verb in _MAKING_OTHER and owned[:1] == ("of",) and all(singular(word) not in _INFORMATION for word in owned)


def is_worked_out(summary: str, returns: str) -> bool:
    """Whether something is only worked out of information: "Encodes a text as base64", "Extract keywords".

    Args:
        summary: the first sentence of a tool's description.
        returns: the type of what it says that it returns.
    """
    said = parts(summary)
    verb, words = singular((*said, "")[0]), _object(said)
    if verb not in _VERBS or not words or returns == "null" or not _ELSEWHERE.isdisjoint(said):
        return False
    if returns == "array" and words[0] not in ARTICLES and len(words) == 1 and singular(words[0]) != words[0]:
        # "Filter products by category"
        return verb == "filter" or singular(words[0]) in _INFORMATION
    last = singular(words[-1])
    if _is_made_other(verb, said):
        return False
    if verb in ("crawl", "scrape", "load") and not _AWAY.isdisjoint(said):
        return False
    if verb == "load":
        # "Load a card number"
        return last in _OBJECTS[verb]
    # "Load a CSV file", "Squares a number", but not "Classify a text as secret"
    return last in _OBJECTS.get(verb, ()) or (last in _INFORMATION and (verb != "classify" or "as" not in said))


def is_power(verb: str, shapes: tuple[str, ...], takes: frozenset[str]) -> bool:
    """Whether two numbers or more are only made another: `power(base, exponent)`, but not `power(device, level)`.

    Args:
        verb: the verb that the tool is called by.
        shapes: those of its parameters.
        takes: the stems of the nouns of what it requires.
    """
    numbers = len(shapes) > 1 and {*shapes} == {"number"}
    return verb in _POWERS and numbers and all(len(noun) == 1 or noun in _TAKEN for noun in takes)


def is_done_to_a_thing(name: str, summary: str, shapes: tuple[str, ...]) -> bool:
    """Whether a verb by which tools only tell things is said of what it is done to: "Solve a ticket", "Subtract from
    the stock" of an item.

    Args:
        name: the tool's name, which opens with that verb.
        summary: the first sentence of its description.
        shapes: those of its parameters.
    """
    verb = parts(name)[0]
    # "Validates a ticket (stamps it)"
    said = parts(summary.partition("(")[0]) or parts(name)
    last = singular(("", *_object(said))[-1])
    done = verb in _ARITHMETIC and bool(summary) and "text" in shapes
    done = done and len(last) != 1 and (last not in _INFORMATION | _OPERANDS or _is_made_other(verb, said))
    return done or (verb == singular((*said, "")[0]) and last in _DONE_TO.get(verb, ()))
