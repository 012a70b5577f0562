"""How well a number that a question names fits a parameter: a number is a quantity of what it stands beside.

Scores only, like `affinity`, which asks it. A number with a unit never goes where another unit, or another thing, is
wanted.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.currencies import CURRENCIES, SIGNS
from treadle.models.offline.grammar.english import COUNT_WORDS, LIMIT_WORDS, word_set
from treadle.models.offline.grammar.meaning import is_computing, is_turning
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import alike, is_function_word, is_verb, parts, singular, stem
from treadle.models.offline.plan.toolbox import Param

LOW = word_set("min minimum least above over more from greater since after start earliest lower floor")
HIGH = word_set("max maximum most below under less fewer until before end latest upper cap ceiling to")
_SETTING = word_set("set change update adjust modify raise lower increase reduce reset")
_SET_TO = re.compile(r"\b([a-z]+) (?:of|for)\b.*\bto\s*[$€£]?(\d)", re.IGNORECASE)
_ALONE = word_set("since until after before below above over under")
_COMPARED = re.compile(r"\b(?:between|above|below|than)\s*[$€£]?(?:[\d.,]+\s*\w*\s+and\s+[$€£]?)?$", re.IGNORECASE)
_INCLUSIVE = re.compile(
    r"\b(?:or (?:on|after|before|more|less|fewer|newer|older|above|below|equal)|(?:and|or) (?:later|earlier)|on or|"
    r"inclusiv\w*|includ\w+|at (?:least|most)|since|until|from|up to|not (?:before|after)|first|last|earliest|latest|"
    r"highest|lowest|minimum|maximum)\b",
    re.IGNORECASE,
)
_STRICT = re.compile(
    r"\b(?:(?:more|less|fewer|later|earlier|greater|higher|lower|larger|smaller|older|newer|[a-z]{3,}er)\b[^.,;]*?\bthan|"
    r"after|before|above|below|over|under|exclusiv\w*|exclud\w+|strictly)\b",
    re.IGNORECASE,
)
_STRICT_NAMES = word_set("after before above below over under")
_IDENTIFIERS = word_set("id number no nr")
_OTHER_UNITS = word_set("short long troy fluid fl nautical square sq cubic imperial")
_PERCENT = frozenset(stem(word) for word in word_set("percent percentage pct rate share ratio interest discount tax"))
_PLAIN = frozenset(stem(word) for word in word_set("value amount number x n input num quantity measurement"))
_MONEY = frozenset(
    stem(word)
    for word in word_set("bill principal fee payment loan income expense price cost budget salary deposit money total")
)
_DEGREE = stem("degrees")
_SCALES = frozenset(stem(word) for word in word_set("celsius fahrenheit temperature"))
# "4 °C", "4 degrees C"
_SCALE = re.compile(r"(?:\s?°\s?|\s?degrees? |\s?deg )(C|F)\b(?!\.\w)")
_SCALE_NAMES = {"C": stem("celsius"), "F": stem("fahrenheit")}
_HEAT = frozenset(stem(word) for word in word_set("temperature temp heat"))
_CENTS = re.compile(r"\.\d\d$")
_PAID = frozenset(stem(word) for word in word_set("amount price sum money fee"))
# What is called by a number: "Flat 12".
_NUMBERED = word_set(
    "flat room apartment unit house building block suite office floor table seat desk booth gate line platform pier "
    "bus van car truck bike boat plane train tram taxi lane track bay dock team group class year grade level player "
    "agent station channel studio court store shop branch site plot lot order ticket invoice bill account case project "
    "phase stage week day month quarter section ward bed tank server node machine box locker unit no nr number"
)
_SPANS = word_set(
    "year month week weekday day date quarter hour minute second time grade level number no nr price amount "
    "age size score rating rank quantity count page index row position salary rent value width height length "
    "weight depth distance cost budget percent rate mark point temperature version step stage season episode "
    "chapter verse line century decade num int integer elo kb mb gb sqm sqft"
)
_COUNTS = frozenset(
    stem(word) for word in (COUNT_WORDS - {"amount", "size"}) | word_set("pieces qty count copies items")
)
_FAMILIES = tuple(
    frozenset(stem(word) for word in word_set(line))
    for line in (
        "percent pct",
        "year years annum",
        "month months",
        "week weeks",
        "day days night nights",
        "hour hours h hr",
        "minute minutes min",
        "second seconds sec",
        "km kilometer kilometers kilometre kilometres",
        "mile miles",
        "m meter meters metre metres",
        "foot feet ft",
        "inch inches",
        "cm centimeter centimeters centimetre",
        "mm millimeter millimeters millimetre millimetres",
        "ton tons tonne tonnes t",
        "mg milligram milligrams",
        "ml milliliter milliliters millilitre millilitres",
        "gb gigabyte gigabytes",
        "mb megabyte megabytes",
        "tb terabyte terabytes",
        "kwh",
        "mwh",
        "kw kilowatt kilowatts",
        "mw megawatt megawatts",
        "ounce ounces oz",
        "gallon gallons",
        "kg kilogram kilograms kilo kilos",
        "g gram grams",
        "lb lbs pound pounds",
        "liter liters litre litres",
        "celsius",
        "fahrenheit",
        "kelvin",
        *(f"{name} {code.lower()}" for name, code in CURRENCIES.items() if name != "pound"),
    )
)


def is_limit(param: Param) -> bool:
    """Whether the parameter bounds how much is returned."""
    whole = "number" not in param.types
    return whole and any(stem(word) in param.stems for word in LIMIT_WORDS) and not bound_of(param)


def bound_of(param: Param) -> str:
    """ "low" or "high" where the parameter bounds a figure, as `min_seats` does, else empty."""
    words = parts(param.name)
    if len(words) < 2 and not _ALONE & set(words):
        return ""
    ends = {words[0], words[-1]}
    if is_way(param):
        return ""
    return "low" if ends & LOW else "high" if ends & HIGH else ""


def is_way(param: Param) -> bool:
    """Whether a number says where something goes, or comes from: "to tank 3" is nothing that bounds a figure."""
    words = parts(param.name)
    way = len(words) == 2 and words[0] in ("from", "to") and "integer" in param.types and "number" not in param.types
    # What is told in a unit, as `from_km`, bounds one.
    return way and words[1] not in _SPANS and singular(words[1]) == words[1] and family(stem(words[1])) is None


def is_strict(param: Param) -> bool:
    """Whether what bounds a figure or a day leaves out the bound itself, as its description says, else its name."""
    told = param.description
    if _INCLUSIVE.search(told):
        return False
    return bool(_STRICT.search(told)) or bool(_STRICT_NAMES & set(parts(param.name)))


def counts(param: Param) -> bool:
    """Whether the parameter takes a number of things."""
    head = param.stems[-1:] if param.stems[:1] not in (("number",), ("num",), ("count",)) else ("number",)
    return bool(_COUNTS & set(head)) and param.shape == "number"


def family(word: str) -> int | None:
    """Which unit of measurement a stem is, if it is one."""
    return next((place for place, names in enumerate(_FAMILIES) if word in names), None)


def _is_money(word: str) -> bool:
    """Whether a stem is a currency's."""
    return any(family(word) == family(code.lower()) is not None for code in CURRENCIES.values())


def number_fit(param: Param, value: Value, clause: Clause, cue: float) -> float:
    """How well a number fits a parameter that takes one, from 0.

    Args:
        param: the parameter.
        value: the number.
        clause: where it stands.
        cue: how plainly the words before it name the parameter.
    """
    if value.kind != "number" or ("integer" in param.types and "number" not in param.types and "." in value.text):
        return 0.0
    if bound_of(param):
        return 0.0
    if _COMPARED.search(clause.text[: value.start]) and clause.is_yes_or_no:
        return 0.0
    before = clause.words_before(value.start, 2)
    if clause.opening in _SETTING and (said := _SET_TO.search(clause.text)) is not None:
        # Of "the limit of 4711" that is set "to 500" 4711 is no limit.
        own = stem(said[1].lower()) in param.nouns
        if own and value.start == said.start(2):
            return 3.0
        if own and said.end(1) < value.start < said.start(2):
            return 0.0
    if is_limit(param):
        return _limit(value, clause, cue)
    if before[:1] == ("top",):
        return 0.0
    if set(parts(param.name)) & _IDENTIFIERS:
        return cue
    return _beside(param, value, clause, cue)


def is_other_unit(value: Value, clause: Clause) -> str | None:
    """The stem of the word by which the unit behind a number is another one: "short" of "3 short tons"."""
    first = next(iter(clause.words_after(value.end, 1)), "")
    return stem(first) if first in _OTHER_UNITS else None


def _limit(value: Value, clause: Clause, cue: float) -> float:
    before, after = clause.words_before(value.start, 1), clause.words_after(value.end, 1)
    if before == ("row",):
        # "Row 7" is one of them.
        return cue
    top = before and before[0] in ("top", "first", "limit", "last", "only", "max")
    ranked = after and after[0] in ("largest", "biggest", "highest", "lowest", "smallest", "most", "top")
    return 2.0 if top or ranked else max(cue - 0.5, 0.0)


def _beside(param: Param, value: Value, clause: Clause, cue: float) -> float:
    """By the unit or the thing after the number, else by the noun before it, else by what is left."""
    least = 0.6 if param.required else 0.0
    before = clause.words_before(value.start, 1)
    cents = _CENTS.search(value.text) is not None and bool(_PAID & set(param.stems))
    if before and before[0] in parts(param.name) and before[0] != clause.command and cue:
        # "Room 104" is the room, whatever stands behind it.
        return cue + least + (0.0 if counts(param) else 0.6)
    if cents and before == (clause.command,) and not param.required:
        return cue + 1.2
    unit = unit_after(value, clause)
    if unit is not None and (other := is_other_unit(value, clause)) and other not in param.stems:
        return 0.0
    if before[:1] == ("at",) and counts(param) and unit not in param.words:
        # What is bought at 7 is no seven of it.
        return 0.0
    if unit is None:
        numbers = sum(each.kind == "number" for each in clause.values)
        opened = bool(before) and before[0] == clause.opening and numbers > 1
        if before and not opened and before[0] == singular(parts(param.name)[-1]) != parts(param.name)[-1]:
            # "Day 2" is one of the days, not two of them.
            return 0.0
        # "Pay Nordkraft 62.40": what is paid, and to whom.
        paid = param.required and bool(_PAID & set(param.stems)) and _is_behind_name(value, clause)
        named = not paid and before and before[0] != clause.opening and is_plain_noun(before[0], stem(before[0]))
        if named and not cue and not before[0][0].isdigit():
            return 0.0
        asked_for = before and before[0] in ("of", "for", "buy", "order", "sell", "ship") and counts(param)
        return cue + least + (0.6 if asked_for else 0.0)
    last, said = parts(param.name)[-1], next((t.low for t in clause.tokens if t.start >= value.end), "")
    if "integer" in param.types and family(unit) is None and singular(said) == last != said:
        # "Two rooms" are not the room that is called 2.
        return 0.0
    # "Times per day" is told in times.
    stems = param.stems[: param.stems.index("per")] if "per" in param.stems else param.stems
    kind, own = family(unit), {family(word) for word in stems} - {None}
    if "per" in param.stems and unit not in stems and kind not in own:
        return 0.0
    own |= _scales(param)
    if unit in param.stems or unit in param.measured or (kind is not None and kind in own) or _is_degrees(param, unit):
        return 2.0 + cue + least
    if own:
        return 0.0
    if kind == 0:
        return cue + least + 1.0 if _PERCENT & set(param.stems) else 0.0
    if kind is not None:
        plain = _PLAIN & set(param.stems) and not (_is_money(unit) and counts(param))
        last = parts(param.name)[-1]
        # Ninety minutes are no ninety words.
        things = counts(param) or (singular(last) != last and not (_MONEY | {_DEGREE}) & set(param.stems))
        return 0.0 if things and not plain else cue + least
    if counts(param):
        return cue + least + (0.8 if param.required else 1.2) + (1.2 if unit in param.words else 0.0)
    if unit in param.words or any(alike(unit, word) for word in param.nouns):
        return cue + least + 1.2
    # "the price of 20 gizmos": what stands before the number is of the things, not of the number.
    return least if _PLAIN & set(param.stems) else 0.0


def _is_behind_name(value: Value, clause: Clause) -> bool:
    """Whether an amount of money stands right behind a name: one with its cents, or the last word of an order that has
    nothing between its verb and the name, "Pay Dana 50", where no number belongs to the name as in "Flat 12"."""
    names = [other for other in clause.values if other.kind == "name" and other.end <= value.start]
    name = next((other for other in names if not clause.text[other.end : value.start].strip()), None)
    if name is None or _CENTS.search(value.text) is not None:
        return name is not None
    first = clause.words_before(name.start, 1) == (clause.command,) and len(names) == 1
    ends = not clause.text[value.end :].strip(" .!")
    return first and ends and not _NUMBERED & {word.lower() for word in name.text.split()}


def unit_after(value: Value, clause: Clause) -> str | None:
    """The stem of the unit or thing that a number stands before ("%", "years", "gadgets"); None if there is none."""
    rest = clause.text[value.end :]
    if re.match(r"\s*(?:%|per ?cent\b)", rest, re.IGNORECASE):
        return "percent"
    if (scale := _SCALE.match(rest)) is not None:
        return _SCALE_NAMES[scale[1]]
    signs = (clause.text[value.start - 1 : value.start], rest.lstrip()[:1])
    if (sign := next((each for each in signs if each in SIGNS), None)) is not None:
        return SIGNS[sign].lower()
    run: list[str] = []
    end = value.end
    for token in [token for token in clause.tokens if token.start >= value.end][:3]:
        joined = re.fullmatch(r"[\s-]*", clause.text[end : token.start]) is not None
        inside = family(token.stem) is None and any(v.start <= token.start < v.end for v in clause.values)
        # "m" and "t" are small words as well, in "I'm" and "can't".
        small = is_function_word(token.text) and (run or token.low not in ("m", "t"))
        if not joined or inside or small or not token.text[0].isalpha():
            break
        if run and is_verb(token.text):
            break
        run.append(token.stem)
        end = token.end
        if family(token.stem) is not None:
            break
    return run[-1] if run else None


def _scales(param: Param) -> set[int | None]:
    """The scale of a temperature, where a parameter's name or description says which it has: `temp_c`, "in °C"."""
    if not _HEAT & set(param.stems):
        return set()
    said = {"celsius" if parts(param.name)[-1] == "c" else "", "fahrenheit" if parts(param.name)[-1] == "f" else ""}
    said |= {_SCALE_NAMES[each] for each in re.findall(r"°\s?(C|F)\b", param.description)} | set(param.words)
    return {family(stem(word)) for word in ("celsius", "fahrenheit") if {word, stem(word)} & said}


def _is_degrees(param: Param, unit: str | None) -> bool:
    """Whether a parameter takes a temperature, of which "degrees" are told in the scale that it has."""
    return unit == _DEGREE and bool(_SCALES & set(param.stems))


def in_other_units(param: Param, clause: Clause, used: Sequence[tuple[int, int]]) -> str | None:
    """A number with its unit that a clause gives, where a parameter takes another unit: it is that what was meant for
    it, and no figure of anything else; None if there is none."""
    own = ({family(word) for word in param.stems} - {None}) | _scales(param)
    for value in clause.values if own else ():
        unit = unit_after(value, clause) if value.kind == "number" else None
        free = all(value.end <= start or end <= value.start for start, end in used)
        if unit is not None and free and family(unit) not in {None, *own}:
            end = next((t.end for t in clause.tokens if t.start >= value.end and t.stem == unit), value.end)
            scale = _SCALE.match(clause.text[value.end :])
            return clause.text[value.start : value.end + scale.end() if scale is not None else end]
    return None


def unit_end(param: Param, value: Value, clause: Clause) -> int:
    """Where a number ends with the unit that the parameter takes ("5 percent" for `rate_percent`)."""
    unit = unit_after(value, clause)
    kind = family(unit) if unit is not None else None
    own = ({family(word) for word in param.stems} - {None}) | _scales(param)
    money = unit is not None and _is_money(unit) and bool(_MONEY & set(param.stems))
    degrees = _is_degrees(param, unit)
    if not degrees and (
        kind is None or not (kind in own or money or (kind == 0 and _PERCENT & {*param.stems, *param.words}))
    ):
        return value.end
    match = re.match(r"\s*(?:[%$€£]|per ?cent\b)", clause.text[value.end :], re.IGNORECASE)
    match = match or _SCALE.match(clause.text[value.end :])
    if match is not None:
        return value.end + match.end()
    for token in (t for t in clause.tokens if t.start >= value.end):
        if token.stem == unit:
            return token.end
        if (is_turning(token.text) or is_computing(token.text)) and token.stem not in param.stems:
            # "2 fewer months" are no 2 months, as 3 vacation days are 3 days.
            break
    return value.end
