"""What a clause says of fields: "company 1001", "without account 800200", "from March to May 2024", "tea or coffee".

`filters` writes them as a tool takes them. Called by `arguments` and `followup`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar.currencies import money_in
from treadle.models.offline.grammar.english import MONTHS
from treadle.models.offline.grammar.meaning import COMPUTING, is_turning
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import Token, is_function_word, is_verb, likeness, parts, singular
from treadle.models.offline.plan.patterns import patterns
from treadle.models.offline.plan.structures import overlaps

_LINK = r"\s*(?:(?:is|are|was|=+|:|#|number|no\.|nr\.?|id|code|called|named|equals?|equal to|of|in|on)\s*)*"
_FILL = r"(?:\s+(?:for|in|on|of|from|the|any|all|those|rows|posted|with|at|a|an|either|both))*\s*$"
_NOT = (
    r"without|excluding|exclude|excepting|except|but not|but without|but|other than|apart from|besides|ignoring|"
    r"leaving out|omitting|neither|not|nor|outside(?: of)?"
)
_BEFORE = tuple(
    (re.compile(rf"\b(?:{pattern}){_FILL}", re.IGNORECASE), op)
    for pattern, op in (
        (r"not before", ">="),
        (r"not after", "<="),
        (_NOT, "!="),
        (r"before|prior to|earlier than", "<"),
        (r"after|later than", ">"),
        (r"since|starting(?: from| with| in)?|beginning(?: with| in)?", ">="),
        (r"(?:until|till|through|up to)(?: and including)?|no later than", "<="),
        (r"between|from", "range"),
    )
)
_OPS = tuple(
    (re.compile(rf"^{pattern}$", re.IGNORECASE), op)
    for pattern, op in (
        (rf"\s*(?:is\s+|are\s+)?(?:not|isn't|!=|<>|{_NOT})\s*(?:in\s*)?", "!="),
        (r"\s*(?:is\s+)?(?:>=|at least|since)\s*", ">="),
        (r"\s*(?:is\s+)?(?:<=|at most|up to|until|through)\s*", "<="),
        (r"\s*(?:is\s+)?(?:>|over|above|after|greater than|more than)\s*", ">"),
        (r"\s*(?:is\s+)?(?:<|under|below|before|less than)\s*", "<"),
        (r"\s*(?:is\s+)?(?:between|from)\s*", "range"),
        (_LINK, "="),
    )
)
_AND = re.compile(r"^\s*(?:,|and|or|nor|&|,\s*(?:and|or))\s*(?:(?:in|for|of|on)\s+)?(?:the\s+)?$", re.IGNORECASE)
_TO = re.compile(r"^\s*(?:to|-|–|through|until|till|and|up to)\s*$", re.IGNORECASE)
_TIMES = {"period", "month", "date", "day", "year", "quarter", "time", "fiscal"}
_GOING_ON = re.compile(r"\s*(?:,?\s*\b(?:and|or|nor)\b|&|,)\s*", re.IGNORECASE)
_DENYING = re.compile(rf"(?:{_NOT})\b", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:all|any|every|each)\s+(?:the\s+)?[\w-]+\s*$", re.IGNORECASE)
_EACH = re.compile(
    r"\b(?:(?:by|per)(?:\s+(?:the\s+)?\w+(?:\s*,|\s+and|\s*,\s*and))*|each|every|(?:each|every)(?:\s+one)?\s+(?P<of>of))"
    r"\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_POSITIVE = re.compile(r"=|\b(?:is|are|was|were|equals?)\b", re.IGNORECASE)
_GRAIN = frozenset(
    ["level", "levels", "detail", "details", "granularity", "basis", "data", "result", "results", "entry", "entries"]
)
"""What follows a field's name where figures are wanted by it, or of it: "at account level" says no account."""
_KIND = re.compile(
    r"(?<!\beach\s)(?<!\bevery\s)"
    r"\b(?:the\s+)?(?:calendar\s+|fiscal\s+)?(?:years?|months?|periods?|quarters?)\s+(?:of\s+)?$",
    re.IGNORECASE,
)
_ONWARDS = re.compile(r"^\s*(?:on(?!\s+\w)|onwards?|upwards?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a clause says of a field: an operator and the values, two for a range, none for `is null`."""

    field: str
    op: str
    values: tuple[Value, ...]
    start: int
    end: int


def conditions(
    clause: Clause,
    fields: Sequence[str],
    used: Sequence[tuple[int, int]],
    words: Collection[str] = (),
) -> list[Constraint]:
    """What a clause says of fields: "company 1001", "period between 202401 and 202403", "in January 2024".

    Args:
        clause: the clause.
        fields: the valid field names; if none are known, any noun right before a number, code or quoted text is one.
        used: stretches that are spoken for.
        words: stems that are the tool's own, or names of something else, and so no values.
    """
    return _Reader(clause, fields, used, words).run()


class _Reader:
    def __init__(
        self, clause: Clause, fields: Sequence[str], used: Sequence[tuple[int, int]], words: Collection[str]
    ) -> None:
        self.words = words
        self.clause = clause
        self.fields = fields
        self.claimed = list(used)
        self.found: list[Constraint] = []

    def run(self) -> list[Constraint]:
        """Reads how named fields are spelled, the conditions on them, then days, months and currencies that stand
        alone."""
        for found in patterns(self.clause, self._field, lambda name: bool(_TIMES & set(parts(name)))):
            if self.fields and not overlaps(*found[3:], self.claimed):
                self._add(Constraint(*found))
        for token in self.clause.tokens:
            name = self._field(token)
            inside = any(value.start <= token.start < value.end for value in self.clause.values)
            if name is not None and not inside and not overlaps(token.start, token.end, self.claimed):
                self._add(self._named(name, token))
        for value in self.clause.values:
            if not overlaps(value.start, value.end, self.claimed):
                name = _field_by_look(value, self.fields)
                if name is not None:
                    self._add(self._after(name, value, value.start, "="))
        return sorted(self.found, key=lambda condition: condition.start)

    def _add(self, condition: Constraint | None) -> None:
        """Takes a condition, unless another one already says what its field is."""
        if condition is None:
            return
        fixed = ("=", "in", "between")
        clash = any(other.field == condition.field and other.op in fixed for other in self.found)
        if clash and condition.op in fixed:
            return
        self.found.append(condition)
        self.claimed.append((condition.start, condition.end))

    def _field(self, token: Token) -> str | None:
        if is_function_word(token.text) or token.text[0].isdigit():
            return None
        if token.low.endswith("ly") and is_turning(token.text):
            # "Monthly" asks for each month, and is none.
            return None
        if self.fields:
            best = max(self.fields, key=lambda name: likeness(token.text, name))
            return best if likeness(token.text, best) >= 0.84 else None
        plain = token.text.isalpha() and token.text.islower() and not is_verb(token.text)
        return singular(token.low) if plain and token.low not in MONTHS else None

    def _named(self, name: str, token: Token) -> Constraint | None:
        first = self._value_after(token.end)
        if first is None:
            return None
        between = self.clause.text[token.end : first.start]
        op = next((op for pattern, op in _OPS if pattern.match(between)), None)
        if op is None or (not self.fields and not re.fullmatch(r"\s*(?:[=:#]|is)?\s*", between)):
            return None
        if first.kind == "phrase" and re.search(r"\b(?:in|on|of|for)\b", between):
            return None
        grouped = self._grouped(token)
        if grouped and (op[0] in "<>" or re.fullmatch(r"\s*of\s*", between)):
            # "By region more than 5" is no bound of the regions, nor is "each month of 2024" one month.
            return None
        if (grouped or op == "!=") and "currency" not in parts(name) and any(money_in(first.text)):
            # "By company excluding USD" and "all companies except USD" leave out a currency, and no company.
            return None
        if first.period is not None and not _TIMES & set(parts(name)):
            code = first.text.isdigit() and re.fullmatch(r"\s*(?:is|are|=|:)?\s*", between)
            if not code:
                return None
        if first.kind == "phrase":
            linked = re.search(r"[=:]|\b(?:is|are|not|than|but|except|excluding)\b", between) is not None
            plain = is_plain_noun(first.text, self._stem(first)) and not first.text.endswith(("ing", "ed"))
            if not self.fields or not (plain or (linked and not first.text.endswith(("ing", "ed")))):
                return None
            if grouped and not linked:
                # "By company combinations" is no company.
                return None
            if self._stem(first) in self.words or is_turning(first.text) or first.text.lower() in COMPUTING:
                return None
            if first.text.lower() in _GRAIN and not linked:
                return None
        start = token.start
        if grouped and (between.strip() or grouped["of"]):
            # "By month from May to July" asks for each month as well, so that the name is left to the grouping.
            start = token.end
        return self._after(name, first, start, op)

    def _grouped(self, token: Token) -> re.Match[str] | None:
        """Whether a breakdown by a field is asked for, and not a value of it: "by company", "each of the companies"."""
        return _EACH.search(self.clause.text[: token.start])

    def _stem(self, value: Value) -> str:
        return next(token.stem for token in self.clause.tokens if token.start == value.start)

    def _value_after(self, end: int) -> Value | None:
        """The value that comes next, or the word that stands for one."""
        value = next((value for value in self.clause.values if value.start >= end), None)
        if value is not None and overlaps(value.start, value.end, self.claimed):
            value = None
        linking = re.compile(rf"(?:{_LINK}|{_NOT}|is|are|\s)*", re.IGNORECASE)
        for token in self.clause.tokens:
            if token.start < end or (value is not None and token.start >= value.start):
                continue
            if linking.fullmatch(f"{self.clause.text[end : token.end]} "):
                continue
            bare = self.fields and not is_function_word(token.text) and self._field(token) is None
            if not bare or overlaps(token.start, token.end, self.claimed):
                break
            return Value(token.text, "phrase", token.start, token.end)
        if value is None:
            return None
        between = self.clause.text[end : value.start]
        return value if not re.search(r"\w{3,}\W+\w{3,}\W+\w{3,}", between) else None

    def _after(self, name: str, first: Value, start: int, op: str) -> Constraint | None:
        """The condition that begins with a field or a value, with what stands before it and what follows it."""
        floor = max((end for _, end in self.claimed if end <= start), default=0)
        before, said = self.clause.text[floor:start], None
        if first.period is not None and (kind := _KIND.search(before)) is not None:
            before, start = before[: kind.start()], floor + kind.start()
        for pattern, word in _BEFORE:
            match = pattern.search(before)
            if match is not None:
                if self._is_contrast(match, floor):
                    return None
                said, start = word, floor + match.start()
                break
        else:
            if self._goes_on(before):
                if "," in before.strip()[-1:] or not self._is_denied(op, self.clause.text[start : first.start]):
                    return None
                said = "!="
        if said == "!=" and op not in ("=", "!="):
            return None
        if said is not None and said != "!=" and op == "=":
            op, said = said, None
        values = self._run(name, first, op)
        if op == "range":
            return self._range(name, values, start)
        if op in ("=", "!=") and len(values) == 1 and (last := self._end_of_range(values[0])) is not None:
            return None if op == "!=" or said else Constraint(name, "between", (first, last), start, last.end)
        op = "!=" if said == "!=" and op == "=" else op
        if len(values) > 1:
            op = {"=": "in", "!=": "not in"}.get(op, "")
        if not op or not self._joined(values):
            return None
        return Constraint(name, op, tuple(values), start, values[-1].end)

    def _is_contrast(self, match: re.Match[str], floor: int) -> bool:
        """Whether a "but" takes a "not" back: "not for company 1001 but for company 2001"."""
        denied = any(condition.end == floor and condition.op in ("!=", "not in") for condition in self.found)
        return denied and match[0].lower().startswith("but")

    def _goes_on(self, before: str) -> bool:
        """Whether a condition is joined to one that denies: "without company 1001 and account 800200"."""
        last = max(self.found, key=lambda condition: condition.end, default=None)
        return last is not None and last.op in ("!=", "not in") and _GOING_ON.fullmatch(before) is not None

    def _is_denied(self, op: str, link: str) -> bool:
        """Whether what a denied condition is joined to is denied as well, beyond doubt: "without … and …" goes on, but
        "where region is not North and product is tea" and "every month but May 2024 and region North" may not."""
        last = max(self.found, key=lambda condition: condition.end)
        opened = _DENYING.match(self.clause.text[last.start : last.end].lstrip())
        limited = _EVERY.search(self.clause.text[: last.start])
        return op == "=" and not _POSITIVE.search(link) and opened is not None and limited is None

    def _joined(self, values: Sequence[Value]) -> bool:
        """Whether the values are of one kind: "1001 and the first quarter" is no list."""
        return len({value.kind == "period" for value in values}) == 1

    def _run(self, name: str, first: Value, op: str) -> list[Value]:
        """The first value and those that "and" or "or" join to it, with or without the field's name again."""
        values = [first]
        while op in ("=", "!="):
            end = values[-1].end
            joint = next((token for token in self.clause.tokens if token.start >= end), None)
            following = self._next_in_run(name, end)
            if joint is None or following is None:
                break
            values.append(following)
        if op == "range":
            last = next((v for v in self.clause.values if v.start >= first.end), None)
            if last is not None and _TO.match(self.clause.text[first.end : last.start]) and last.kind == first.kind:
                values.append(last)
        return values

    def _next_in_run(self, name: str, end: int) -> Value | None:
        rest = [token for token in self.clause.tokens if token.start >= end]
        again = next((token for token in rest[:4] if self._field(token) == name), None)
        for start in [end] if again is None else [end, again.end]:
            gap = self.clause.text[end : again.start] if again is not None and start == again.end else None
            value = next((value for value in self.clause.values if value.start >= start), None)
            if gap is not None and not _AND.match(gap):
                continue
            if value is not None:
                between = self.clause.text[start : value.start]
                if (gap is not None and not between.strip()) or (gap is None and _AND.match(between)):
                    return value if not overlaps(value.start, value.end, self.claimed) else None
            word = next((token for token in rest if token.start >= start and not is_function_word(token.text)), None)
            if word is None or self._field(word) is not None or not self.fields:
                continue
            between = self.clause.text[start : word.start]
            joined = (gap is not None and not between.strip()) or (gap is None and _AND.match(between))
            # A word in lower case is no value beside a code or a name: "400100 and above", "North or elsewhere".
            like = not any(v.end == end for v in self.clause.values) and not is_turning(word.text)
            if joined and like and is_plain_noun(word.text, word.stem):
                return Value(word.text, "phrase", word.start, word.end)
        return None

    def _range(self, name: str, values: list[Value], start: int) -> Constraint | None:
        if len(values) == 2:
            return Constraint(name, "between", tuple(values), start, values[-1].end)
        onwards = _ONWARDS.match(self.clause.text[values[0].end :])
        if onwards is None:
            return None
        return Constraint(name, ">=", (values[0],), start, values[0].end + onwards.end())

    def _end_of_range(self, first: Value) -> Value | None:
        last = next((value for value in self.clause.values if value.start >= first.end), None)
        if last is None or last.kind != first.kind:
            return None
        gap = self.clause.text[first.end : last.start]
        return last if _TO.match(gap) and "and" not in gap.lower() else None


def _field_by_look(value: Value, fields: Sequence[str]) -> str | None:
    if value.period is not None:
        by_day = ("date", "day", "period", "month")
        wanted: tuple[str, ...] = by_day if value.period.day is not None else ("period", "month", "date", "day")
        wanted = ("year", *wanted) if value.period.is_year else wanted
    elif re.fullmatch(r"[A-Z]{3}", value.text):
        wanted = ("currency",)
    else:
        return None
    return next((name for word in wanted for name in fields if word in parts(name)), None)
