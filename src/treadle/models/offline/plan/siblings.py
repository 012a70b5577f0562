"""Siblings: parameters of a tool that take things of one kind, such as two sources, or a currency from and one to.

Which of them gets which value follows from the words beside it, else from the order. Called by `arguments`.
"""

from typing import Any

from treadle.models.offline.grammar.currencies import currency_of
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.candidates import Candidates
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import mentions, overlaps
from treadle.models.offline.plan.toolbox import Param
from treadle.models.offline.plan.vocabulary import Vocabulary, replacement

_JOINERS = word_set("between and with vs versus against to from into in or than & of")
_INTO = word_set("to into in")
_DIRECTED = word_set("from to into between and")


class Siblings:
    """Fills the groups of one tool's parameters from a clause.

    Args:
        clause: the part of the question.
        vocabulary: the names known to be valid.
        can: what the clause has for the tool.
        out: takes the arguments.
    """

    def __init__(self, clause: Clause, vocabulary: Vocabulary, can: Candidates, out: Filling) -> None:
        self.clause, self.vocabulary, self.can, self.out = clause, vocabulary, can, out

    def groups(self, params: list[Param]) -> list[list[Param]]:
        """The parameters, among these, that take things of one kind, each kind apart."""
        groups: dict[tuple[str, ...], list[Param]] = {}
        for param in params:
            if not fits.is_date(param):
                groups.setdefault(param.nouns, []).append(param)
        return [group for group in groups.values() if len(group) > 1 and all(param.required for param in group[:2])]

    def fill(self, group: list[Param]) -> None:
        """Gives the parameters of a group what the clause names, in the order or the direction that it says."""
        names = self.can.names(group[0])
        named = [
            each for each in mentions(self.clause, names) if not self.vocabulary.is_another(each.written, each.name)
        ]
        found = [Value(each.name, "code", each.start, each.end) for each in named]
        if fits.is_currency(group[0]):
            found += fits.currencies_in(self.clause, names)
        spans = [(value.start, value.end) for value in found]
        ranked = sorted(
            (
                (score, value)
                for value in [*self.clause.values, *self.can.phrases(group[0])]
                if (score := self._joined(group[0], value)) > 0 and not overlaps(value.start, value.end, spans)
            ),
            key=lambda pair: (-pair[0], pair[1].start),
        )
        if names:
            self.out.unknown |= {value.text: names for score, value in ranked[: len(group) - len(found)] if score >= 2}
            ranked = [] if self.out.unknown else ranked
        if fits.direction(group[0]) and len(ranked) > len(group):
            ranked.sort(key=lambda pair: self._beside(pair[1], group[0]))
        likely = [value for score, value in ranked if score >= 2]
        every = [*found, *likely]
        found += likely[: max(len(group) - len(found), 0)]
        found = list({value.text: value for value in sorted(found, key=lambda value: -value.start)}.values())
        chosen = sorted(found, key=lambda value: value.start)[: len(group)]
        if fits.is_currency(group[0]) or fits.direction(group[0]):
            chosen = self._by_direction(chosen, group[0])
        if fits.is_currency(group[0]) and len(chosen) == len(group) and not self.out.spread:
            # Into several, one at a time.
            others = self.can.coordinated(chosen[-1], every)
            self.out.spread = (chosen[-1], *others) if others else ()
            self.out.used += [(other.start, other.end) for other in others]
        order = sorted(group, key=lambda param: {"from": 0, "": 1, "to": 2}[fits.direction(param)])
        if (
            len(chosen) == 1
            and fits.direction(order[0]) == "from"
            and fits.led_by(group[0], chosen[0], self.clause) in _INTO
        ):
            order = order[1:]
        if any(self._is_contrary(param, value) for param, value in zip(order, chosen, strict=False)):
            return
        for param, value in zip(order, chosen, strict=False):
            written = self.clause.text[value.start : value.end]
            text = (currency_of(value.text) or value.text) if fits.is_currency(param) else value.text
            if names or (fits.is_currency(param) and len(chosen) == len(group)):
                self.out.telling += 1
            if names and text != written:
                self.out.renamed[written] = text
            self._set(param, text, value.start, value.end)
            if self.can.tool.change is not None and not names and not fits.is_currency(param):
                self.out.given.append((param, value))

    def _joined(self, param: Param, value: Value) -> float:
        if param.enum:
            return 3.0 if replacement(value.text, None, [str(name) for name in param.enum]) else 0.0
        if fits.is_currency(param):
            return 3.0 if currency_of(value.text) else 0.0
        if value.kind in ("number", "period", "time"):
            return 0.0
        before, after = self.clause.words_before(value.start, 2), self.clause.words_after(value.end, 1)
        near = [word for word in before if word not in ("the", "our", "a")][:1] + list(after)
        joined = bool(near) and (near[0] in _JOINERS or near[-1] in ("vs", "versus", "and", "with", "against", "to"))
        if value.kind == "phrase":
            return 2.0 if joined and near[0] != "of" and near[0] != "in" else 0.5
        return 3.0 if joined else 2.0

    def _beside(self, value: Value, param: Param) -> int:
        """How far a value is from being one of two ends: what is led by "of" or "in" is what they are ends of. What an
        amount is in is the first of them: of "100 USD to EUR and GBP" the dollars are."""
        if fits.is_currency(param) and self._is_amount(value):
            return -1
        led = fits.led_by(param, value, self.clause)
        return 0 if led in _DIRECTED else 2 if led in ("in", "of") else 1

    def _is_contrary(self, param: Param, value: Value) -> bool:
        """Whether "from" stands before what would go into the parameter for "to"."""
        return fits.direction(param) == "to" and fits.led_by(param, value, self.clause) == "from"

    def _by_direction(self, values: list[Value], param: Param) -> list[Value]:
        def place(value: Value) -> int:
            led = fits.led_by(param, value, self.clause)
            return 0 if self._is_amount(value) or led == "from" else 2 if led in _INTO else 1

        return sorted(values, key=lambda value: (place(value), value.start))

    def _is_amount(self, value: Value) -> bool:
        """Whether a value stands right at a number: USD in "100 USD", the sign of "$100"."""
        behind = any(v.kind == "number" and 0 <= value.start - v.end <= 1 for v in self.clause.values)
        return behind or self.clause.text[value.end : value.end + 1].isdigit()

    def _set(self, param: Param, value: Any, start: int, end: int) -> None:
        self.out.arguments[param.name] = value
        self.out.used.append((start, end))
