"""Whether a tool of which nothing says if it changes something is called by what it tells, or by what it does.

`current_weather` and "Soil moisture of a bed" are no orders, and `comment`, which "Adds a comment to a ticket", is one.
Called by `toolbox`.
"""

import re

from treadle.models.offline.grammar.deed_words import DEED_NOUNS, DEED_VERBS, FIGURE_VERBS
from treadle.models.offline.grammar.english import (
    CHANGES,
    HANDLING_VERBS,
    LIGHT_VERBS,
    MAKING_VERBS,
    PLAIN_VERBS,
    TELLING_VERBS,
    word_set,
)
from treadle.models.offline.grammar.thing_words import BESIDE_THINGS, THINGS
from treadle.models.offline.grammar.words import is_function_word, is_verb, parts, singular, stem
from treadle.models.offline.plan.headings import (
    ARTICLES,
    BEHIND_THINGS,
    DESCRIBING,
    STATES,
    is_asked,
    is_heading,
    without_preposition,
)

# "Bring", "string" and their like are as short.
_SHORTEST_PARTICIPLE = 6
# What may be an order as well is none before such a figure.
_ORDERED = word_set("order exchange request transfer book share")
FIGURES = word_set("total rate status history")
# What the things behind a name are told by: "Member details", `ticket_status`.
INFORMATION = word_set("info information detail details status overview profile stats statistics")
_PARTICLES = word_set("on off up out down away back everything everybody everyone all")
_ASKING = word_set("what how when where which who whose whether why")
_FINDING = word_set("list count calculate compute estimate predict")
_KEYS = word_set("name title id number code key")
# What is done to information.
_HANDLED = word_set(
    "wipe sync flush share print publish push pull export import refresh reload dump upload mask redact anonymize "
    "encrypt decrypt leak archive backup store save burn seal play amend toggle broadcast verify confirm"
)
_MEASURED = word_set(
    "price balance moisture temperature humidity rate cost total count level weight height width length depth distance "
    "speed pressure volume area average score fare fee duration consumption usage stock quantity age size value"
)
_OWNED = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\b(?P<what>\w+) of an? (?P<whose>\w+)",
        r"\b(?P<whose>\w+)['’]s (?P<what>\w+)",
        r"\b(?P<whose>\w+)['’]s \w+ (?P<what>\w+)",
    )
)
_BEGINNING = re.compile(r"\W*(?:starts?|begins?|stops?) (?:to \w|\w+ing\b)", re.IGNORECASE)
_GIVEN_TO = re.compile(
    r"\W*gives? (?:an?|the) (?:[\w-]+ )*?(?!(?:of|in|on|at|for|to|from|with|by|per|as|about|and|or) )[\w-]+ "
    r"(?:an?|some|another) \w+",
    re.IGNORECASE,
)
_TOLD_TO = re.compile(
    r"\W*(?:tells?|shows?) (?:(?:an?|the) )?(?P<whom>[\w-]+) (?:an?|the|some|something)\b", re.IGNORECASE
)
_RETURNED = re.compile(r"\W*returns? an? \w+", re.IGNORECASE)
# "Returns the book to the shelf", but not "Returns the way to the station"
_RETURNED_TO = re.compile(
    r"\W*returns? (?:the|its|their) (?!(?:path|distance|route|way|link|url|time|answer|solution)\b)\w+ "
    r"(?:to (?:an?|the|its|their|his|her|them|it)\b|back\b)",
    re.IGNORECASE,
)
_OF_ONE = {
    "count": re.compile(
        r"\W*counts?\s+(?:an?|one|another)\s+(?:\w+\s+)?\w+(?:\s+(?:for|at|as|towards?|by)\b|\W*$)", re.IGNORECASE
    ),
    "list": re.compile(
        r"\W*lists?\s+an?\s+\w+(?:\s+\w+)?\s+(?:for\s+(?:sale|rent|auction|adoption)|at\s+a|"
        r"(?:on|in)\s+(?:the|a)\s+(?:market|marketplace|store|shop))\b",
        re.IGNORECASE,
    ),
}
_CHANGING = frozenset().union(*CHANGES)
_THIS_TOOL = word_set("this the a tool function to that which")
_TEXTS = frozenset(stem(word) for word in ("text", "message", "body", "content", "status", "comment"))
# What is put into these they may be called with: `cart(item)`.
_HOLDERS = word_set("cart basket wallet portfolio inbox agenda")
_OWNERS = frozenset(map(stem, word_set("user customer person owner name account client employee member player id")))
_DONE_TO = word_set("add raise make run have put do")
_SHOWING = word_set("show check see run do view")
_GOING = MAKING_VERBS - TELLING_VERBS - word_set("create make add raise write turn merge update new")
_AND_TELLS = re.compile(r"\b(?:and|then|to) (\w+)")
_INFORMING = word_set(
    "list table overview summary report query search check calculation forecast estimate quote comparison sum total "
    "average prediction chart plot diagram simulation analysis test expression math maths lookup"
)


def is_called_by_noun(name: str, summary: str, returns: str, told_nothing: bool, needs_nothing: bool) -> bool:
    """Whether a tool's name and description are no order but say what it tells: `current_weather`, "Outstanding
    balance", `order_total` that is the "Total of an order".

    Args:
        name: the tool's name.
        summary: the first sentence of its description.
        returns: the type of what it says that it returns.
        told_nothing: whether it takes no arguments.
        needs_nothing: whether it can do without.
    """
    words = without_preposition(parts(name)) or ("",)
    first, last, told = words[0], words[-1], (*parts(summary), "")[0]
    article = (*parts(summary), "", "")[1]
    if is_asked(summary) or is_heading(words, parts(summary), returns):
        return True
    if told and article in ("a", "an", "the") and ((told == "like" and told in words) or is_strong(singular(told))):
        # "Like a post", "Set the heating of a room": before an article stands no noun.
        return False
    if is_function_word(told) and told != "do":
        # "What a quantity of it costs"; but not "For sealing a case".
        return first not in _CHANGING and (
            told in _ASKING or first not in DEED_VERBS | DEED_NOUNS | HANDLING_VERBS | {"report"}
        )
    describes = first in DESCRIBING or (first.endswith("ing") and len(first) > _SHORTEST_PARTICIPLE)
    figure = first in _ORDERED and last in FIGURES | INFORMATION and told in ("", first, last)
    figure = figure or _is_told_of(words, parts(summary), returns)
    if needs_nothing and returns == "array" and singular(last) != last and not says_a_deed(parts(summary)):
        # Nothing is opened by who does not say what: `open_tickets` lists them.
        opening = any(stem(word) == first != word for word in parts(summary))
        figure = figure or (told_nothing and first in STATES and not opening) or words == (last,)
    # "Free beds in a ward"
    said, number = parts(summary), returns in ("number", "integer")
    led = said[: len(words)] == words and said[len(words) : len(words) + 1] in (("in",), ("of",), ("at",), ("on",))
    figure = figure or (first == "free" and number and led and singular(last) != last)
    # What returns a number and is described as one, "Soil moisture of a bed", is that number.
    named = parts(summary)[: len(words)] == words and last in _MEASURED and first not in _CHANGING
    return (describes and told in ("", *words)) or figure or (named and number) or _is_titled(words, summary, returns)


def says_a_deed(said: tuple[str, ...]) -> bool:
    """Whether the words of a description say what is done, and not what there is a list of: "Frees all slots", "Ships
    the crates"; but not "Open tickets", nor "Launches of a year"."""
    told, behind = (*said, "", "")[:2]
    verb = singular(told)
    deed = verb in _CHANGING | DEED_VERBS | DEED_NOUNS | STATES | {"back"} and verb not in TELLING_VERBS | PLAIN_VERBS
    object_behind = behind != "" and (not is_function_word(behind) or behind in _PARTICLES)
    object_behind = object_behind and (behind not in BEHIND_THINGS or verb in ("turn", "switch"))
    return deed and (behind in ARTICLES or (told != verb and object_behind))


def _is_told_of(words: tuple[str, ...], said: tuple[str, ...], returns: str) -> bool:
    """Whether a description opens with what the tool is called by, and with whose that is: "Phone number of a person",
    "Movie by title"."""
    behind = (*said[len(words) :], "", "")[:2] if said[: len(words)] == words else (*said[1:], "", "")[:2]
    thing = singular(words[-1]) == words[-1] and said[:1] == words[:1]
    # "Get rid of an item"
    thing = thing and words[0] not in _CHANGING | DEED_VERBS | PLAIN_VERBS
    keyed = behind[0] == "by" and behind[1] in _KEYS
    done = words[0] in DEED_NOUNS or (words[0] in HANDLING_VERBS and returns not in ("number", "integer"))
    if (done or words[0] == "report") and (len(words) == 1 or said[: len(words)] != words):
        # "Seal of a case" may be put on it, by who is told that.
        alone = len(words) == 1 or words[-1] in INFORMATION
        return thing and keyed and alone and returns in ("object", "array")
    return thing and (behind[0] == "of" or keyed)


def _is_titled(words: tuple[str, ...], summary: str, returns: str) -> bool:
    """Whether a description is but what the tool is called by, a thing of which it tells: "Member details" of
    `member_info`."""
    said, first = parts(summary), words[0]
    plain = first in TELLING_VERBS | MAKING_VERBS and not (len(words) > 1 and words[-1] in INFORMATION)
    if plain or is_strong(first) or first in PLAIN_VERBS | DEED_VERBS | _HANDLED:
        return False
    if first in DEED_NOUNS | HANDLING_VERBS and len(words) > 1 and words[-1] not in INFORMATION:
        # What is called `press_sign` is no press.
        return False
    return returns in ("object", "array") and said[:1] == (first,) and bool({*said[1:2]} & (INFORMATION - {"status"}))


def is_a_thing(name: str, shapes: tuple[str, ...], returns: str, takes: frozenset[str] = frozenset()) -> bool:
    """Whether a function of which nothing is said is called by nothing but what one asks for: `weather`, `stock_price`;
    or only works something out: `celsius_to_fahrenheit`.

    Args:
        name: its name.
        shapes: those of its parameters.
        returns: the type of what it says that it returns.
        takes: the stems of the nouns of what it requires.
    """
    words = parts(name) or ("",)
    first, numbers = words[0], shapes.count("number")
    if len(words) > 1 and words[-1] in INFORMATION and all(stem(word) in takes for word in words[:-1]):
        # `scooter_status(scooter_id)`
        return True
    one = singular(first)
    if is_strong(one) or {first, one} & (DEED_VERBS | DEED_NOUNS | HANDLING_VERBS | _HANDLED):
        return False
    if len(words) == 1 and returns in ("array", "integer") and first not in (one, f"{one}es") and one not in _CHANGING:
        # `events` of a day
        return True
    if shapes == ("expression",):
        return True
    if one in _HOLDERS and len(words) == 1 and not takes <= _OWNERS:
        return False
    if len(words) == 3 and words[1] == "to":
        return 0 < numbers == len(shapes) and returns in ("number", "integer")
    if len(words) == 2 and words[1] in _MEASURED | {"rate"} and returns in ("number", "integer") and not numbers:
        # `invoice_total` of a vendor; but who is to `hike_fare`, says no how much.
        return not is_verb(first) and first not in TELLING_VERBS | MAKING_VERBS | LIGHT_VERBS | FIGURE_VERBS
    known = THINGS | BESIDE_THINGS | FIGURES | INFORMATION | _MEASURED
    # A figure that takes a number may be set to it.
    taken = numbers if {*words} & _MEASURED and (len(words) == 1 or len(shapes) > 1) else 0
    opens = {first, one} & (THINGS if len(words) == 1 else THINGS | BESIDE_THINGS)
    # The status of a server; what takes the text of one may post it.
    opens |= {first} & {"status"} if takes and takes.isdisjoint(_TEXTS) else set()
    # `stock` of a product is a number; who is to stock it, says no how much.
    opens |= {first} & _MEASURED if returns in ("number", "integer") and not numbers else set()
    return bool(opens) and not taken and all({word, singular(word)} & (known - {"rate"}) for word in words)


def is_of_a_thing(name: str, summary: str) -> bool:
    """Whether what stands behind the first word of a description stands behind a thing, so that this may be no verb."""
    words, said = parts(name), parts(summary)
    if not said:
        return len(words) > 1 and words[-1] in INFORMATION
    behind = {
        *said[1:2],
        *(said[len(words) :][:1] if said[: len(words)] == words and singular(words[-1]) == words[-1] else ()),
    }
    led = any(word in BEHIND_THINGS or word.endswith("ed") for word in behind)
    return led or (len(said) > 1 and said[1] in INFORMATION and not is_verb(words[0]))


def is_a_deed(name: str, summary: str, takes: frozenset[str]) -> bool:
    """Whether a tool is called by a verb for what is done to things, and its description, which opens with no other
    verb, does not say that it tells something: `forget_term`, "Terms to forget".

    Args:
        name: the tool's name.
        summary: the first sentence of its description.
        takes: the stems of the nouns of what it requires.
    """
    words, said = parts(name), parts(summary)
    first, last = words[0], words[-1]
    if said[:1] == ("the",) and "to" not in said and last in INFORMATION:
        # "The loan behind a ticket" of `loan_info`
        return False
    # `report_loss` reports one; `report_sales` of a month may tell of them.
    reported = first == "report" and len(words) > 1 and bool(takes) and singular(last) == last
    if first in DEED_VERBS or (reported and not is_telling(said) and not names_a_figure(last)):
        return True
    if first not in DEED_NOUNS or len(words) == 1 or stem(last) in takes:
        # "Next train to a city"
        return first in DEED_NOUNS and not is_telling(said) and said[:1] not in {(word,) for word in DESCRIBING}
    telling = is_telling(said)
    # "The current water level"
    opened = next((at for at, word in enumerate(said) if word not in ARTICLES and word not in DESCRIBING), len(said))
    said = said[opened:] if opened < len(said) else said
    # "Water level of a tank", "Departures from a station" of `train_departures`, "Opening hours of a park"
    names = (
        len(words) if said[: len(words)] == words else next((at for at in (1, 2) if said[at - 1 : at] == (last,)), 0)
    )
    behind = (*said[names:], "")[0]
    thing = names > 0 and (behind == "" or behind in BEHIND_THINGS | {"from", "by", "per"})
    return not (thing or telling or (not said and names_a_figure(last)))


def is_telling(said: tuple[str, ...]) -> bool:
    """Whether the words of a description open with a verb for telling, and not with a thing: "Filters the list", "This
    tool looks up a price", but not "Filter to be sealed"."""
    # "This tool looks up a price", "Tool to look up a price"
    opened = next((at for at, word in enumerate(said) if word not in _THIS_TOOL), 0)
    words = (*said[opened:], "", "", "")
    told, behind = words[:2]
    if singular(told) == "look" and behind == "up":
        behind = words[2]
    verb = singular(told)
    led = is_function_word(behind) and behind not in (*ARTICLES, "you", "me", "us")
    plain = verb in PLAIN_VERBS | _FINDING and not led
    return plain or (verb in TELLING_VERBS and behind in ARTICLES)


def names_a_figure(word: str) -> bool:
    """Whether a name that ends with a word is a figure's, or that of what is told: `water_level`."""
    return word in _MEASURED | FIGURES | INFORMATION


def verb_behind(name: str, told: str, article: str) -> str:
    """The verb of a tool that is called by a thing first, as `parcels_ship` is, "Ship a parcel"; empty if it is not.

    Args:
        name: the tool's name.
        told: the word that its description opens with.
        article: the word behind that.
    """
    first, *rest = parts(name) or ("",)
    if not told:
        # Nothing but its name tells what `orders_cancel` does.
        changes = [word for word in rest if is_strong(word)]
        return changes[-1] if changes and first not in PLAIN_VERBS | TELLING_VERBS else ""
    verb = singular(told)
    led = article in ARTICLES or is_strong(verb)
    if first not in PLAIN_VERBS | TELLING_VERBS:
        # "Book vacation days for somebody", which is called `vacation_book`; but not "Book of orders", nor "Order
        # details" of `get_order`.
        led = led or singular(article) != article
        led = led or (verb in _CHANGING and article != "" and not is_function_word(article))
    # "give_raise", "Raises a salary", is ordered by either.
    behind = verb in rest and first not in {told, verb, "give"} | LIGHT_VERBS
    return verb if behind and led and verb not in _MEASURED else ""


def is_strong(verb: str) -> bool:
    """Whether a verb says that something is changed, whatever it is done to: "cancel", but not "open" or "order"."""
    return verb in _CHANGING and verb not in MAKING_VERBS | TELLING_VERBS | _ORDERED


def is_done_to(verb: str, summary: str) -> bool:
    """Whether a description that opens with a verb by which tools tell things as well says what is done to something:
    "Adds a comment to a ticket", but not "Makes a list"."""
    return verb in _DONE_TO and not _INFORMING & {*parts(summary)}


def _is_new(first: str, verb: str) -> bool:
    """Whether a verb that nobody knows says what is done by a tool whose name need not mean that it tells: `show_post`
    "Unhides a post", but what `get_logs` "Pulls" is told."""
    return first in _SHOWING and verb not in TELLING_VERBS | PLAIN_VERBS | MAKING_VERBS


def is_set_going(verb: str, summary: str) -> bool:
    """Whether a description that opens with a verb by which tools tell things as well says what is set going or made
    an end of: "Opens a room", but not "Opens a file and returns its lines"."""
    words = {*parts(summary)}
    # "Starts a prediction job"
    informs = _INFORMING & words and not {"job", "process", "workflow"} & words
    telling = any(singular(word[1]) in TELLING_VERBS for word in _AND_TELLS.finditer(summary.lower()))
    going = verb in _GOING or (verb == "turn" and bool(words & {"on", "off"}))
    return going and not informs and not telling


def told_otherwise(first: str, summary: str, begun: tuple[str, str]) -> frozenset[str] | None:
    """The verbs that command a tool that changes something by its description only: "Deletes a file", which is called
    `get_rid_of`, or "Starts to track a car".

    Args:
        first: the word that the tool's name opens with.
        summary: the first sentence of its description.
        begun: the verb that opens it, and the word behind that.
    """
    told, article = begun
    verb = singular(told)
    if _BEGINNING.match(summary):
        return frozenset({first, verb})
    if (
        first not in PLAIN_VERBS
        or article not in ARTICLES | {"everybody", "everyone"}
        or not (is_strong(verb) or is_done_to(verb, summary) or is_set_going(verb, summary) or _is_new(first, verb))
    ):
        return None
    return next((group for group in CHANGES if verb in group), frozenset({verb}))


def is_told_to(summary: str, takes: frozenset[str]) -> bool:
    """Whether a tool tells or shows somebody something whom it is called with: "Tell a person something"."""
    to = _TOLD_TO.match(summary)
    return to is not None and stem(to["whom"]) in takes


def is_given(summary: str) -> bool:
    """Whether a tool gives somebody something: "Gives a raise to an employee", and not a price."""
    told, article = (*parts(summary), "", "")[:2]
    # "Gives the players in a room a hint"
    return (singular(told) == "give" and article in ("a", "an") and " to " in summary) or bool(_GIVEN_TO.match(summary))


def is_returned(name: str, summary: str, takes: frozenset[str] = frozenset()) -> bool:
    """Whether what a tool is called by is returned, as by `return_car`, and is not what it tells: "Returns a list"."""
    said = parts(summary)
    returned = _RETURNED.match(summary) or _RETURNED_TO.match(summary)
    return returned is not None and (said[2] in parts(name) or stem(said[2]) in takes)


def is_of_one(verb: str, summary: str) -> bool:
    """Whether a tool that is called by counting or listing does it to one thing: "Counts a vote", "Lists a bike for
    sale"."""
    return verb in _OF_ONE and _OF_ONE[verb].match(summary) is not None


def owner_told(description: str, nouns: tuple[str, ...]) -> tuple[str, ...]:
    """The stem of whose thing a tool speaks of: the employee of "the salary of an employee", "an employee's salary".

    Args:
        description: what the tool says of itself.
        nouns: the stem of the thing.
    """
    found = [(match["whose"], match["what"]) for form in _OWNED for match in form.finditer(description)]
    whose = next((whose for whose, what in found if stem(what) in nouns), "")
    return (stem("person" if whose.lower() in ("somebody", "someone") else whose),) if whose else ()
