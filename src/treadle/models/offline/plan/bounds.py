"""Bounds: "at least 10 seats" for `min_seats`, "from May to June" for `date_from` and `date_to`.

Fills parameters in pairs that bound a figure or a day. A bound that the parameters cannot express exactly, such as
"more than 200" for a `min_total`, is not filled, so that its words stay unaccounted for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import alike, is_function_word, parts, singular, stem
from treadle.models.offline.plan.affinity import is_date
from treadle.models.offline.plan.numbers import HIGH, LOW, bound_of, is_strict, unit_after, unit_end
from treadle.models.offline.plan.structures import overlaps, plain_number
from treadle.models.offline.plan.toolbox import Param

_YEARLY = word_set("after before since until year")
_TO = re.compile(r"^\s*(?:to|and|-|–|until|till|through|up to)\s*[$€£]?$", re.IGNORECASE)
_ON = re.compile(r"\s+(?:on|onwards?|(?:and|or) (?:later|after))\b(?!\s+\w)", re.IGNORECASE)
_NUMBER_OPS = tuple(
    (re.compile(rf"(?:\b|^|\s)(?:{pattern})\s*[$€£]?$", re.IGNORECASE), op)
    for pattern, op in (
        (r"at least|(?:no|not) (?:less|fewer) than|a? ?minimum of|>=", ">="),
        (r"at most|up to|(?:no|not) more than|a? ?maximum of|<=", "<="),
        (r"(?:more|greater|higher|larger) than|over|above|>", ">"),
        (r"(?:less|fewer|lower|smaller|cheaper) than|under|below|<", "<"),
        (r"between|from", "range"),
    )
)
_DAY_OPS = tuple(
    (re.compile(rf"\b(?:{pattern})\s*(?:the\s+)?$", re.IGNORECASE), op)
    for pattern, op in (
        (r"since|starting(?: from| on)?|not before", ">="),
        (r"until|till|through|up to|not after|no later than", "<="),
        (r"before|prior to|earlier than", "<"),
        (r"after|later than", ">"),
        (r"between|from", "range"),
        (r"in|on|during|of|for", "="),
    )
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A value for a bounding parameter, and the stretch of the clause that gives it."""

    param: Param
    value: Any
    start: int
    end: int


def find_bounds(params: list[Param], clause: Clause, used: list[tuple[int, int]], digits_only: bool) -> list[Bound]:
    """What a clause says for the parameters among `params` that bound something."""
    found: list[Bound] = []
    for value in clause.values:
        spans = [*used, *((bound.start, bound.end) for bound in found)]
        taken = {bound.param.name for bound in found}
        if overlaps(value.start, value.end, spans):
            continue
        if years := [p for p in params if p.shape == "number" and _is_year(p, value)]:
            more = _years(years, value, clause)
        elif value.period is not None:
            more = _days([p for p in params if is_date(p) and bound_of(p)], value, clause, digits_only)
        elif value.kind == "number":
            more = _numbers([p for p in params if p.shape == "number" and bound_of(p)], value, clause)
        else:
            more = []
        found += [] if any(bound.param.name in taken for bound in more) else more
    return found


def _numbers(params: list[Param], value: Value, clause: Clause) -> list[Bound]:
    match, op = _operator(_NUMBER_OPS, clause.text[: value.start])
    if match is None:
        return []
    last = _last(value, clause) if op == "range" else None
    end = (last or value).end
    start = match.start()
    about = [stem(word) for word in (*clause.words_after(end, 2), *clause.words_before(start, 4))]
    percent = [p for p in params if unit_end(p, last or value, clause) > end]
    end = unit_end(percent[0], last or value, clause) if percent else end
    about = (
        about if not percent else [stem(word) for word in (*clause.words_after(end, 2), *clause.words_before(start, 4))]
    )
    spans = _named(clause, params, start, end)
    about_money = bool(re.search(r"[$€£]", clause.text[value.start - 1 : end + 2]))
    sole = len({tuple(_own(p)) for p in params}) == 1 and unit_after(last or value, clause) is None
    named = percent or [p for p in params if any(alike(word, own) == 1.0 for word in about for own in _own(p))]
    bare = [p for p in params if not _own(p)]
    fitting = params if about_money or sole else named or bare
    low = next((p for p in fitting if bound_of(p) == "low"), None)
    high = next((p for p in fitting if bound_of(p) == "high"), None)
    number = plain_number(value.text)
    if op == "range" and last is not None:
        wanted = [(low, number, ">="), (high, plain_number(last.text), "<=")]
    else:
        wanted = [(low if op in (">", ">=") else high, number, op)] if op != "range" else []
    given = [(p, _bounding(p, figure, each)) for p, figure, each in wanted if p is not None]
    found = [Bound(p, figure, *spans) for p, figure in given if figure is not None]
    return found if len(found) == len(wanted) else []


def _is_year(param: Param, value: Value) -> bool:
    """Whether a number of years is what bounds the parameter, and a year is what is said."""
    whole = value.kind in ("number", "period") and value.text.isdigit() and len(value.text) == 4
    return whole and bound_of(param) != "" and bool(_YEARLY & set(parts(param.name)))


def _years(params: list[Param], value: Value, clause: Clause) -> list[Bound]:
    """Years told as numbers, such as 1925 for `published_after`."""
    low = next((p for p in params if bound_of(p) == "low"), None)
    high = next((p for p in params if bound_of(p) == "high"), None)
    match, op = _operator(_DAY_OPS, clause.text[: value.start])
    last = _last(value, clause) if op == "range" else None
    opened = _ON.match(clause.text, value.end) if op == "range" and last is None else None
    if match is None or (opened is None and op == "range" and (last is None or not last.text.isdigit())):
        return []
    op = ">=" if opened is not None else op
    start, end = _named(clause, params, match.start(), opened.end() if opened is not None else (last or value).end)
    first, final = int(value.text), int((last or value).text)
    lower, upper = (low, first, ">="), (high, final, "<=")
    wanted = {"range": [lower, upper], "=": [lower, upper], ">=": [lower], ">": [(low, final, ">")], "<=": [upper]}
    told = [(p, _bounding(p, year, each)) for p, year, each in wanted.get(op, [(high, first, "<")]) if p is not None]
    found = [Bound(p, year, start, end) for p, year in told if year is not None]
    return found if len(found) == len(wanted.get(op, [upper])) else []


def _bounding(param: Param, number: int | float, op: str) -> int | float | None:
    """What the parameter is to be given so that it bounds as was asked; None if no figure does."""
    strict = is_strict(param)
    if strict == (op in (">", "<")):
        return number
    if not isinstance(number, int) or not param.types <= {"integer", "null"}:
        return None
    return number + (1 if op in (">", "<=") else -1)


def _named(clause: Clause, params: list[Param], start: int, end: int) -> tuple[int, int]:
    """The stretch of a bound, with the noun before it ("a total of at least 200") or after it ("10 seats")."""
    nouns = {word for param in params for word in _own(param)}
    for token in clause.tokens:
        if token.stem in nouns and token.end <= start and len(clause.text[token.end : start].split()) <= 2:
            start = token.start
        if token.stem in nouns and token.start >= end and not clause.text[end : token.start].strip():
            end = token.end
    return start, end


def _own(param: Param) -> list[str]:
    return [stem(word) for word in parts(param.name) if word not in LOW | HIGH]


def _days(params: list[Param], value: Value, clause: Clause, digits_only: bool) -> list[Bound]:
    low = next((p for p in params if bound_of(p) == "low"), None)
    high = next((p for p in params if bound_of(p) == "high"), None)
    match, op = _operator(_DAY_OPS, clause.text[: value.start])
    if value.period is None or (low is None and high is None):
        return []
    if match is None and not _stands_alone(value, clause):
        return []
    if match is not None and _is_of_another(params, match.start(), clause):
        return []
    last = _last(value, clause) if op == "range" else None
    end = (last or value).end
    if op == "range" and (last is None or last.period is None):
        opened = _ON.match(clause.text, value.end)
        if opened is None:
            return []
        op, end = ">=", opened.end()
    first_day, last_day = value.period.days(digits_only)
    start, end = _named(clause, params, match.start() if match else value.start, end)
    wanted: list[tuple[Param | None, str]] = []
    if op in ("range", "=", ""):
        last_day = last.period.days(digits_only)[1] if last and last.period else last_day
        # Neither what is after a day nor what is before it is that day.
        after, before = low is not None and is_strict(low), high is not None and is_strict(high)
        wanted = [(low, _moved(first_day, -after)), (high, _moved(last_day, int(before)))]
    elif op in (">=", ">"):
        strict = low is not None and is_strict(low)
        wanted = [(low, _moved(first_day, -strict) if op == ">=" else _moved(last_day, 1 - strict))]
    else:
        strict = high is not None and is_strict(high)
        wanted = [(high, _moved(last_day, int(strict)) if op == "<=" else _moved(first_day, strict - 1))]
    return (
        [] if any(p is None for p, _ in wanted) else [Bound(p, day, start, end) for p, day in wanted if p is not None]
    )


def _is_of_another(params: Sequence[Param], start: int, clause: Clause) -> bool:
    """Whether a bound is said of another event than the one that all parameters bound: what expires after a day need
    not be signed after it."""
    events = [{stem(word) for word in parts(param.name) if word.endswith("ed")} for param in params]
    before = next((token for token in reversed(clause.tokens) if token.end <= start), None)
    if before is None or not events or not all(events) or is_function_word(before.text):
        return False
    thing = singular(before.low) != before.low or any(v.start <= before.start < v.end for v in clause.values)
    return not thing and not any(before.stem in event for event in events)


def _stands_alone(value: Value, clause: Clause) -> bool:
    """Whether a time is the only one of the clause and stands right behind a noun: "the transactions 2026-10-05"."""
    before = next((token for token in reversed(clause.tokens) if token.end <= value.start), None)
    alone = sum(each.period is not None for each in clause.values) == 1
    return alone and before is not None and is_plain_noun(before.text, before.stem)


def _moved(day: str, by: int) -> str:
    """The day after or before, in the same form."""
    if "-" in day:
        return (date.fromisoformat(day) + timedelta(days=by)).isoformat()
    moved = date(int(day[:4]), int(day[4:6]), int(day[6:])) + timedelta(days=by)
    return moved.strftime("%Y%m%d")


def _operator(ops: tuple[tuple[re.Pattern[str], str], ...], before: str) -> tuple[re.Match[str] | None, str]:
    for pattern, op in ops:
        match = pattern.search(before)
        if match is not None:
            return match, op
    return None, ""


def _last(first: Value, clause: Clause) -> Value | None:
    """The other end of a range."""
    following = next((value for value in clause.values if value.start >= first.end), None)
    years = following is not None and all(v.text.isdigit() and len(v.text) == 4 for v in (first, following))
    if following is None or (following.kind != first.kind and not years):
        return None
    gap = re.sub(r"^\s*[A-Za-z$€£]{1,12}(?=\s+(?:and|to)\b)", "", clause.text[first.end : following.start])
    return following if _TO.match(gap) else None
