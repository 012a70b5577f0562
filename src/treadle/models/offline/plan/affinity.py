"""How well a value that a question names fits a parameter: by its look, its neighbours and the names known.

Scores only; `arguments` hands the values out. A score of 1 or more is good evidence, below a half is none.
"""

import re
from functools import lru_cache
from zoneinfo import available_timezones

from treadle.models.offline.grammar.currencies import CODES, currency_of
from treadle.models.offline.grammar.english import (
    PERSON_WORDS,
    PLACE_WORDS,
    TEXT_WORDS,
    TITLE_WORDS,
    WEEKDAYS,
    word_set,
)
from treadle.models.offline.grammar.meaning import is_calendar_name, is_turning
from treadle.models.offline.grammar.question import Clause, Value, is_path
from treadle.models.offline.grammar.words import alike, is_function_word, parts, singular, stem, tokens
from treadle.models.offline.plan.numbers import bound_of, is_way, number_fit, unit_after
from treadle.models.offline.plan.toolbox import Param

_IDENTIFIERS = word_set("id number no nr")
_CODES = word_set("id number no nr code tag ref sku key")
_LINKS = word_set("is are was number no nr id code called named of with the for a an")
_DATE_STEMS = frozenset(
    stem(word) for word in sorted(word_set("period month date day start end since until deadline due when"))
)
_NOT_PEOPLE = word_set("in at within on many much")
_TITLED = re.compile(r"(?:Mrs?|Ms|Miss|Dr|Prof)\b")
_SEARCHED = word_set("query search keyword keywords term terms")
_ARTICLES = word_set("the a an our my your")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_MONTH = re.compile(r"\d{4}-?\d{2}")
_GOING = word_set("goes going arrives arrive arriving destination towards")
_COMING = word_set("comes leaves leave leaving departs depart departing origin")
_STARTS = (("start",), ("end",), ("at",), ("begin",))
_BETWEEN = (
    ("from", re.compile(r"\bbetween (?:the )?$", re.IGNORECASE)),
    ("to", re.compile(r"\bbetween (?:the )?\S[^.;]* and (?:the )?$", re.IGNORECASE)),
)
_NO_PLACES = word_set(
    "meantime meanwhile hurry way end case hope event background future past name interest light dark "
    "rain sun cold heat"
)
# Small words that are called so all the same: "lot 101".
_NOUNS_TOO = word_set("lot kind sort way bit")
_SINGLE = frozenset(stem(word) for word in ("letter", "char", "character", "digit"))
_PATHS = frozenset(
    stem(word)
    for word in sorted(word_set("repo repository path file filename folder directory dir branch ref image model route"))
)
_CURRENCY = re.compile(
    r"[$€£](?=\d)|(?<=\d)[€£$]|[^\W\d_]{4,}"
    rf"|(?:(?<=\d )|(?<=\d)|(?<!\w)(?=[A-Z]{{3}} \d))(?:{'|'.join(sorted(CODES)).upper()})(?!\w)"
)
_TOWNS = word_set("city town country")
# These are called by plain words.
_ROOMS = word_set("room building")
_FROM = word_set("from origin start old since source src sender payer")
_TO = word_set("to target receiver payee dest destination end into until new language target quote recipient")


_DAYS = word_set("day date night month")
_ASKING_WHICH = re.compile(
    r"\b(?:which|what)\s+(\w+)\s+(is|are|was|were|does|do|did|has|have)\s+(?:the\s+)?$", re.IGNORECASE
)
_IN_IT = re.compile(r"\s+(?:in|on|at|from|to|of|with|under|by)\b")
_ON_DAYS = tuple((word,) for word in ("on", "by", "until", "before", "after", "next", "this", "last", "every"))
_MAILS, _PAGES = frozenset({"email", "address", "to"}), frozenset(map(stem, ("url", "uri", "link", "website", "page")))
_USERS = frozenset({"user", "account", "login", "member", "subscriber"})


def _any(words: frozenset[str], stems: tuple[str, ...]) -> bool:
    return any(stem(word) in stems for word in words)


def _shown_as(param: Param, form: re.Pattern[str]) -> bool:
    """Whether all examples of the parameter are of a form."""
    return bool(param.examples) and all(form.fullmatch(text) for text in param.examples)


def is_date(param: Param) -> bool:
    """Whether the parameter takes a day or a month."""
    return (
        param.schema.get("format") in ("date", "date-time")
        or "YYYY-MM" in param.description
        or bool(_DATE_STEMS & set(param.nouns + param.stems[-1:]))
        or _shown_as(param, _DAY)
    )


def is_day(param: Param) -> bool:
    """Whether the parameter takes one day, for which a month would be none."""
    said = param.schema.get("format") == "date" or "YYYY-MM-DD" in param.description
    return said or parts(param.name)[-1:] == ("day",) or _shown_as(param, _DAY)


def is_month(param: Param) -> bool:
    """Whether the parameter takes one month, for which a day would be another thing."""
    return _shown_as(param, _MONTH) or re.search(r"\bYYYY-?MM\b(?!-)", param.description) is not None


def is_weekday(param: Param) -> bool:
    """Whether the parameter takes a day of the week, by its name, its examples or what it says of itself."""
    told = bool(param.examples) and all(text.lower() in WEEKDAYS for text in param.examples)
    said = re.search(r"\bday of the week\b|\bweekday\b", param.description)
    return "weekday" in param.nouns or told or said is not None


def is_time(param: Param) -> bool:
    """Whether the parameter takes a time of day."""
    said = param.schema.get("format") == "time" or "HH:MM" in param.description
    named = parts(param.name)[-1:] == ("time",) and param.schema.get("format") is None
    return said or named or _shown_as(param, _CLOCK)


def named_from(param: Param, value: Value, clause: Clause) -> int:
    """Where a value starts with the parameter's own name before it, as "as of" before a day for `as_of`."""
    if param.shape == "number":
        before = next((token for token in reversed(clause.tokens) if token.end <= value.start), None)
        own = before is not None and before.stem in param.stems and is_turning(before.low)
        return before.start if before is not None and own and before.low != "top" else value.start
    words = r"\s+".join(re.escape(word) for word in parts(param.name))
    match = re.search(rf"\b{words}\s+(?:the\s+)?$", clause.text[: value.start], re.IGNORECASE)
    return value.start if match is None or not (is_date(param) or is_time(param)) else match.start()


def is_search(param: Param) -> bool:
    """Whether the parameter takes words to look for."""
    return _any(_SEARCHED, param.nouns[-1:])


def is_zone(param: Param) -> bool:
    """Whether the parameter takes an IANA time zone."""
    words = parts(param.name)
    return "timezone" in words or "tz" in words or words[-2:] == ("time", "zone")


def is_version(param: Param) -> bool:
    """Whether the parameter takes the version of something."""
    return "version" in param.nouns and param.shape == "text"


def is_unit(param: Param) -> bool:
    """Whether the parameter takes what something is counted in."""
    return "unit" in param.stems or is_currency(param)


def is_currency(param: Param) -> bool:
    """Whether the parameter takes a currency."""
    return "currency" in param.nouns or "currency" in param.stems


def is_free_text(param: Param) -> bool:
    """Whether the parameter takes words as they come: a search query, a message."""
    return _any(TEXT_WORDS, param.nouns[-1:])


def direction(param: Param) -> str:
    """ "from" or "to" where the parameter's name says so, else empty."""
    words = set(parts(param.name))
    # The `first_day` is one of two ends, and a `first_name` none.
    words |= (
        {"start"} if words & _DAYS and "first" in words else {"end"} if words & _DAYS and "last" in words else set()
    )
    return "from" if words & _FROM else "to" if words & _TO else ""


def affinity(param: Param, value: Value, clause: Clause) -> float:
    """How well `value` fits `param`, from 0.

    Args:
        param: the parameter.
        value: the value.
        clause: where it stands.
    """
    cue = cue_of(param, value, clause)
    if param.shape == "number":
        led = led_by(param, value, clause)
        astray = is_way(param) and (led,) not in prepositions(param)
        return 0.0 if astray else number_fit(param, value, clause, cue)
    if is_weekday(param) and param.shape == "text":
        return 3.0 if singular(value.text.lower()) in WEEKDAYS else 0.0
    if value.kind == "time" and parts(param.name)[-1:] in _STARTS and param.shape == "text" and not is_time(param):
        return 0.0 if "format" in param.schema or "YYYY" in param.description else 2.0 + cue
    if is_time(param) or value.kind == "time":
        return 3.0 + cue if is_time(param) and _shows_time(value) else 0.0
    if is_date(param):
        if value.period is not None and value.period.last is not None:
            return 0.0
        if value.period is not None and value.period.day is None and is_day(param):
            return 0.0
        if value.period is not None and value.period.day is not None and is_month(param):
            return 0.0
        if not param.required and bound_of(param):
            # "From" a day is since it, or on it: `bounds` fills what is said without a doubt.
            return 0.0
        fits = direction(param) and clause.words_before(value.start, 1) in prepositions(param)
        fits = fits or (direction(param) and direction(param) == end_of_two(value, clause))
        return (3.0 + bool(fits)) if value.kind == "period" else 0.0
    if is_version(param) and re.search(r"\d", value.text):
        return 3.0 + cue
    if is_zone(param):
        return 3.0 if zone_of(value.text) and _is_place(value, clause) else 0.3 if value.kind == "name" else 0.0
    if is_currency(param):
        return 3.0 + cue if currency_of(value.text) and not _is_contrary(param, value, clause) else 0.0
    if value.kind == "number":
        if _is_contrary(param, value, clause) or not value.text.isdigit() or _is_amount_of(param, value, clause):
            return 0.0
        beside = next((stem(word) for word in clause.words_before(value.start, 1)), "")
        if unit_after(value, clause) is not None and beside not in (*param.nouns, *_IDENTIFIERS):
            # "A flight for 2 passengers" is not called so.
            return 0.0
        alone = 0.6 if _is_code(param, value, clause) else 0.2 if "id" in parts(param.name) else 0.0
        return cue + 0.4 if cue else alone
    if value.kind in ("period", "email"):
        kinds = frozenset[str]() if value.kind == "period" else _PAGES if "://" in value.text else _MAILS
        return cue or (3.0 if _any(kinds, param.stems) else 0.8 * (value.kind == "email" and _any(_USERS, param.nouns)))
    score = _text(param, value, clause)
    # What cannot be it is not made it by the words before it.
    return score + cue if score else 0.0


def _is_code(param: Param, value: Value, clause: Clause) -> bool:
    """Whether a number is written as no amount is, "0042", right behind the verb, for what is called by its digits."""
    coded = _CODES & set(parts(param.name)) or any(re.search(r"\d", each) for each in param.examples)
    return (
        bool(coded)
        and re.match(r"0\d", value.text) is not None
        and clause.words_before(value.start, 1) == (clause.opening,)
    )


def _shows_time(value: Value) -> bool:
    return value.kind == "time" or (value.kind == "quoted" and re.search(r"\d", value.text) is not None)


def led_by(param: Param, value: Value, clause: Clause) -> str:
    """The word before a value and the noun for what it is: "to" for 4712 in "to the account 4712"."""
    words = clause.words_before(value.start, 4)
    return next((word for word in words if stem(word) not in param.nouns and word not in _ARTICLES), "")


def _told_direction(param: Param) -> str:
    """ "from" or "to" where the parameter's description says so, as "where the parcel goes" does; else empty."""
    said = {token.low for token in tokens(param.description)}
    return "to" if said & _GOING else "from" if said & _COMING else ""


def _is_contrary(param: Param, value: Value, clause: Clause) -> bool:
    """Whether the clause says "from" of what the parameter wants for "to", or the other way round."""
    led, wanted = led_by(param, value, clause), direction(param) or _told_direction(param)
    return (wanted == "to" and led == "from") or (wanted == "from" and led in ("to", "into"))


def _is_amount_of(param: Param, value: Value, clause: Clause) -> bool:
    """Whether a number says how much a thing is of, and not which one: 50 in "a payment of 50"."""
    of, noun, *_ = (*clause.words_before(value.start, 2), "", "")
    return of == "of" and noun not in _IDENTIFIERS and stem(noun) in param.nouns


def _is_place(value: Value, clause: Clause) -> bool:
    """Whether a name stands where a place does: "in Tokyo", "Tokyo time", but not "the date of Easter"."""
    before, after = clause.words_before(value.start, 1), clause.words_after(value.end, 1)
    here = bool(before) and before[0] in ("in", "at", "for", "near", "to", "and", "or", "from", "timezone", "zone")
    return here or "/" in value.text or after == ("time",) or clause.text[value.end : value.end + 2] in ("'s", "’s")


def _is_asked_for(param: Param, value: Value, clause: Clause) -> bool:
    """Whether a clause asks which one it is, "Which ward is Tom in?", so that what stands behind is none."""
    said = _ASKING_WHICH.search(clause.text[: value.start])
    if said is None or stem(said[1].lower()) not in param.nouns:
        return False
    return said[2].lower() not in ("is", "are", "was", "were") or _IN_IT.match(clause.text, value.end) is not None


def _text(param: Param, value: Value, clause: Clause) -> float:
    if _is_contrary(param, value, clause) or _is_asked_for(param, value, clause):
        return 0.0
    dated = is_calendar_name(value.text) and not cue_of(param, value, clause)
    on_a_day = clause.words_before(value.start, 1) in _ON_DAYS
    if dated and (value.kind == "name" or on_a_day or _any(PLACE_WORDS | PERSON_WORDS, param.nouns)):
        return 0.0
    if value.kind == "code" and is_path(value.text) and not set(param.nouns) & _PATHS:
        # "Apples/pears" are two.
        return 0.0
    numbered = bool(param.examples) and all(re.search(r"\d", text) for text in param.examples)
    if numbered and re.search(r"\d", value.text) is None:
        # Of what is called "7b" Maths is none.
        return 0.0
    if set(param.nouns) & _SINGLE and len(value.text) != 1:
        return 0.0
    place, person, title = (_any(words, param.nouns) for words in (PLACE_WORDS, PERSON_WORDS, TITLE_WORDS))
    if value.kind == "code" and _any(_TOWNS, param.nouns) and re.search(r"\d", value.text):
        return 0.0
    before = clause.words_before(value.start, 1)
    if person and not place and value.kind == "phrase" and before and before[0] in _NOT_PEOPLE:
        return 0.0
    if place and not person and (_TITLED.match(value.text) or before[:1] == ("by",)):
        return 0.0
    if person and not place and value.kind == "name" and before and before[0] in ("in", "at", "within"):
        return 0.0
    score = {"quoted": 1.5, "name": 0.8, "code": 0.9, "phrase": 0.9}[value.kind]
    if value.kind == "name" and (place or person or title):
        score = 1.3
    is_room = _any(_ROOMS, param.nouns) and value.text not in _NO_PLACES
    if value.kind == "phrase" and (place or person) and not is_room:
        score = 0.6
    if value.kind == "quoted" and (title or is_free_text(param)):
        score = 2.2
    if (
        value.kind == "code"
        and re.fullmatch(r"[A-Z]{2,}", value.text)
        and not re.search("code|symbol|ticker", param.name)
    ):
        score = 0.7
    if place and before and before[0] in ("in", "at", "near", "to", "from", "for", "of"):
        score += 0.6
    inside = before == ("the",) and clause.words_before(value.start, 2)[1:] in (("in",), ("at",))
    ends = not clause.words_after(value.end, 1) and value.text not in _NO_PLACES
    if place and not person and value.kind == "phrase" and inside and ends:
        # "The lamp in the kitchen"
        score += 0.9
    owned = clause.text[value.end : value.end + 2] in ("'s", "’s", "' ", "’ ")
    author = _any(word_set("author writer"), param.nouns)
    leads = (
        ("by", "did", "does", "from", "has")
        if author
        else ("for", "does", "did", "by", "to", "has", "of", "will", "can")
    )
    if person and (owned or (before and before[0] in leads)):
        score += 0.6
    if before in prepositions(param):
        score += 0.6
    return score - 0.02 * sum(token.end <= value.start for token in clause.tokens)


def end_of_two(value: Value, clause: Clause) -> str:
    """ "from" or "to" where a value is the first or the second of "between … and …", else empty."""
    return next((end for end, form in _BETWEEN if form.search(clause.text[: value.start])), "")


def prepositions(param: Param) -> tuple[tuple[str], ...]:
    """The words that lead a value the way that the parameter's name says."""
    return {"from": (("from",), ("since",)), "to": (("to",), ("into",), ("until",)), "": ()}[direction(param)]


def cue_of(param: Param, value: Value, clause: Clause) -> float:
    """How plainly the words right before the value name the parameter: "ticket 42", "quantity of 5"."""
    for place, word in enumerate(clause.words_before(value.start, 4)):
        if word in _LINKS:
            continue
        if word == clause.command:
            return 0.0
        if is_function_word(word) and (word not in _NOUNS_TOO or stem(word) not in param.nouns):
            return 0.0
        best = max((alike(stem(word), noun) for noun in param.nouns), default=0.0)
        apart = ("of" in clause.words_before(value.start, place)) and param.shape != "number"
        weight = {1.0: 1.6, 0.5: 0.9}.get(best, 0.0)
        return weight * 0.5 if apart else weight
    return 0.0


def currencies_in(clause: Clause, names: tuple[str, ...]) -> list[Value]:
    """The currencies that a clause names by a word ("euros"), a sign, or a code beside an amount; if `names` are known,
    those of them."""
    found = []
    for match in _CURRENCY.finditer(clause.text):
        code = currency_of(match.group())
        if code is not None and (not names or code in names):
            found.append(Value(code, "code", match.start(), match.end()))
    return found


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    zones = sorted(available_timezones())
    cities = {zone.rsplit("/", 1)[-1].replace("_", " ").lower(): zone for zone in reversed(zones) if "/" in zone}
    return cities | {zone.lower(): zone for zone in zones}


def zone_of(text: str) -> str | None:
    """The IANA time zone of that name, or of the city of that name in the zone table."""
    return _zones().get(text.strip().lower())
