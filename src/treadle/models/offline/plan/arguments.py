"""Filling a tool's arguments from a clause: every value comes from what was written or from names known to be valid.

`affinity` scores single values, `structures` fills lists and filters; this file hands out the values, each once, and
says what stayed empty. Called by `plan`.
"""

import re
from dataclasses import replace
from typing import Any

from treadle.models.offline.grammar.arithmetic import expression_span
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import TIMES, is_computing
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import closest, likeness, stem
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.bounds import find_bounds
from treadle.models.offline.plan.calendar import Spelling, in_numbers
from treadle.models.offline.plan.candidates import Candidates
from treadle.models.offline.plan.conditions import Constraint, conditions
from treadle.models.offline.plan.either import which_is_which
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.filters import as_filters, as_mapping
from treadle.models.offline.plan.led import fill_led, given_reason
from treadle.models.offline.plan.numbers import bound_of, unit_end
from treadle.models.offline.plan.operands import operands, operation_of
from treadle.models.offline.plan.refusals import is_conditional, is_of_many, is_strange
from treadle.models.offline.plan.scales import fill_scaled
from treadle.models.offline.plan.siblings import Siblings
from treadle.models.offline.plan.structures import (
    Mention,
    grouping_spans,
    is_ranked_within,
    mentions,
    of_one_table,
    overlaps,
    plain_number,
    ranking,
)
from treadle.models.offline.plan.switches import switched
from treadle.models.offline.plan.ties import is_led_astray, is_numbered, settle
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox
from treadle.models.offline.plan.units import fill_units
from treadle.models.offline.plan.vocabulary import Vocabulary

_GROUPING = frozenset(stem(word) for word in sorted(word_set("dimension group grouping by breakdown")))
_COUNTED = re.compile(r"[\s,]+(?:(?:the|only)\s+)*(?:top|limit|at most|max|from|of|in|by|at|on|for|since)\s*$", re.I)
_FREE = re.compile(r"\b(?:about|regarding|saying|says|concerning|titled|called|named|for|on|:)\s+(.+)$", re.IGNORECASE)


def fill(tool: KnownTool, clause: Clause, vocabulary: Vocabulary, box: Toolbox) -> Filling:
    """Fills what it can of a tool's arguments from a clause.

    Args:
        tool: the tool.
        clause: the part of the question it is to answer.
        vocabulary: the names known to be valid.
        box: all tools offered, whose words are not values.
    """
    return _Filler(tool, clause, vocabulary, box).run()


class _Filler:
    def __init__(self, tool: KnownTool, clause: Clause, vocabulary: Vocabulary, box: Toolbox) -> None:
        self.tool = tool
        self.clause = clause
        self.vocabulary = vocabulary
        self.box = box
        self.out = Filling()
        self.can = Candidates(tool, clause, vocabulary, box, self.out)
        self._paired: list[list[Param]] = []

    def run(self) -> Filling:
        """Fills in order of how plain the evidence is: expressions, pairs, structure, choices, then single values."""
        for param in self.tool.params:
            if param.is_expression and self.clause.arithmetic is not None:
                self.out.arguments[param.name] = self.clause.arithmetic
                numbers = [(v.start, v.end, v.text) for v in self.clause.values if v.kind == "number"]
                self.out.used += expression_span(self.clause.arithmetic, self.clause.text, numbers)
        if operation_of(self.tool) is not None:
            return self._operands()
        fill_units(self.tool, self._open("text"), self.clause, self.out)
        siblings = Siblings(self.clause, self.vocabulary, self.can, self.out)
        self._paired = siblings.groups(self._open("text"))
        for group in self._paired:
            siblings.fill(group)
        self._fill_choices()
        self._fill_bounds()
        self._fill_calendar()
        self._fill_known()
        self._fill_filters()
        self._fill_lists()
        self._fill_single()
        fill_scaled(self.tool, self.clause, self.out)
        self._fill_free_text()
        fill_led(self.tool, self._open("text"), self.clause, self.out)
        settle(self.tool, self.out, self.clause, self.can.render)
        self.out.missing = [param for param in self.tool.required if param.name not in self.out.arguments]
        return self.out

    def _set(self, param: Param, value: Any, start: int, end: int) -> None:
        self.out.arguments[param.name] = value
        self.out.used.append((start, end))

    def _open(self, *shapes: str) -> list[Param]:
        free = [p for p in self.tool.params if p.name not in self.out.arguments and not p.is_expression]
        return [p for p in free if p.shape in shapes]

    def _operands(self) -> Filling:
        """The two numbers of a tool that is one operation; none of them if another one is asked for."""
        numbers = [(v.start, v.end, v.text) for v in self.clause.values if v.kind == "number"]
        pair = operands(self.tool, self.clause.arithmetic)
        if pair is not None and self.clause.arithmetic is not None:
            self.out.arguments = {p.name: plain_number(text) for p, text in zip(self.tool.params, pair, strict=True)}
            self.out.used += expression_span(self.clause.arithmetic, self.clause.text, numbers)
            self.out.telling += 1
        self.out.missing = [param for param in self.tool.required if param.name not in self.out.arguments]
        return self.out

    def _fill_choices(self) -> None:
        for param in self._open("boolean"):
            self._fill_truth(param)
        for param in (param for param in self._open("text") if param.enum and fits.direction(param) == "to"):
            found = mentions(self.clause, [str(value) for value in param.enum], self.out.used, least=0.9)
            led = [each for each in found if self.clause.words_before(each.start, 1) in (("to",), ("into",))]
            if led:
                self._set(param, led[0].name, led[0].start, led[0].end)
        self._fill_currency()
        for param in self._open("text"):
            if (reason := given_reason(param, self.clause)) is not None:
                self.out.arguments[param.name] = reason
            elif param.enum:
                found = mentions(self.clause, [str(value) for value in param.enum], self.out.used, least=0.9)
                found = [each for each in found if not self._is_no_choice(param, each)]
                if found:
                    self._set(param, found[0].name, found[0].start, found[0].end)
                    sole = sum(found[0].name.lower() in each.choices for each in self.box.tools) == 1
                    self.out.telling += sole and not self.clause.is_yes_or_no
                    values = [Value(mention.name, "code", mention.start, mention.end) for mention in found]
                    self._spread(values[0], self.can.coordinated(values[0], values))

    def _fill_currency(self) -> None:
        """The currency of an amount, where a tool takes one: by a sign or a word that names it."""
        asking = [p for p in self._open("text") if fits.is_currency(p) and not fits.direction(p)]
        found = fits.currencies_in(self.clause, tuple(str(each) for each in asking[0].enum)) if len(asking) == 1 else []
        if len({each.text for each in found}) == 1:
            self._set(asking[0], found[0].text, found[0].start, found[0].end)

    def _is_no_choice(self, param: Param, found: Mention) -> bool:
        """Whether a word of the choice says something else: in "3 feet in metres" feet are what there is, and not what
        is wanted, and "the first flight" is one of the flights, and not the first class."""
        number = any(v.kind == "number" and 0 <= found.start - v.end <= 1 for v in self.clause.values)
        after = self.clause.words_after(found.end, 1)
        which = found.written.lower() in TIMES or is_computing(found.written)
        one_of = which and bool(after) and stem(after[0]) in self.tool.name_stems
        return one_of or (number and fits.direction(param) == "to")

    def _fill_truth(self, param: Param) -> None:
        said = switched(param, self.clause, self.tool.may_change)
        if said is not None:
            self.out.arguments[param.name], spans = said
            self.out.telling += 1
            self.out.used += spans

    def _fill_bounds(self) -> None:
        bounding = [param for param in self._open("text", "number") if bound_of(param)]
        digits = self.vocabulary.months_in_digits
        for bound in find_bounds(bounding, self.clause, self.out.used, digits):
            self._set(bound.param, bound.value, bound.start, bound.end)
            self.out.telling += 1

    def _fill_calendar(self) -> None:
        """A year, or a quarter or month and its year, for a tool that takes them as whole numbers."""
        spans = [value for value in self.clause.values if value.period is not None]
        free = [value for value in spans if not overlaps(value.start, value.end, self.out.used)]
        for value in free:
            numbers = in_numbers(self._open("text", "number"), value)
            for param, number in numbers:
                self._set(param, number, value.start, value.end)
            if len(numbers) == 1:
                self._spread(value, self.can.coordinated(value, spans))
            if numbers:
                return

    def _fill_filters(self) -> None:
        for param in self._open("filters", "mapping"):
            key = next(
                (k for k in ("dimension", "field", "column") if k in param.item_schema.get("properties", {})), "field"
            )
            fields = self.vocabulary.names([stem(key)], self.can.owners()) or tuple(
                str(value) for value in param.item_schema.get("properties", {}).get(key, {}).get("enum", ())
            )
            found = [
                replace(condition, field=self.vocabulary.meant([stem(key)], condition.field))
                for condition in conditions(
                    self.clause,
                    self.can.spellings([stem(key)], fields),
                    self.out.used,
                    self.vocabulary.stems | self.tool.weights.keys(),
                )
            ]
            self._write_filters(param, found)
            self.out.used += [
                (match.start(), match.end())
                for match in re.finditer(r"\b(?:all|any)\s+(?:the\s+)?(\w+)", self.clause.text, re.IGNORECASE)
                if any(likeness(match[1], name) >= 0.84 for name in fields)
            ]

    def _write_filters(self, param: Param, found: list[Constraint]) -> None:
        """Writes what the parameter can express; the words of the rest stay unaccounted for."""

        def spelling(field: str) -> Spelling:
            return self.vocabulary.spelling(field, self.can.owners())

        if param.shape == "filters":
            written = as_filters(found, param.item_schema, spelling)
            held = [condition for condition, _ in written]
            value: Any = [row for _, rows in written for row in rows]
        else:
            pairs = as_mapping(found, spelling)
            held = [condition for condition, _ in pairs.values()]
            value = {name: text for name, (_, text) in pairs.items()}
        if held:
            self.out.arguments[param.name] = value
            self.out.used += [(condition.start, condition.end) for condition in held]
            self.out.telling += len(held)

    def _fill_known(self) -> None:
        """Single names that the clause mentions and that are known to be valid."""
        for param in self._open("text"):
            found = [] if param.enum else mentions(self.clause, self.can.names(param), self.out.used)
            found = [each for each in found if not self.vocabulary.is_another(each.written, each.name)]
            if not found:
                continue
            first = found[0]
            if first.written != first.name:
                self.out.renamed[first.written] = first.name
            self._set(param, first.name, first.start, first.end)
            self.out.telling += 1
            values = [Value(mention.name, "code", mention.start, mention.end) for mention in found]
            self._spread(values[0], self.can.coordinated(values[0], values))

    def _spread(self, value: Value, others: list[Value]) -> None:
        if others and not self.out.spread:
            self.out.spread = (value, *others)
            self.out.used += [(other.start, other.end) for other in others]

    def _fill_lists(self) -> None:
        # A word that is a field and a figure as well is a field behind "by".
        groups: list[tuple[int, int]] = []
        for param in sorted(self._open("names"), key=lambda each: not _GROUPING & set(each.stems)):
            names = tuple(str(value) for value in param.enum) or self.vocabulary.names(param.nouns, self.can.owners())
            if _GROUPING & set(param.stems):
                said = grouping_spans(self.clause, self.can.spellings(param.nouns, names))
                said = [each for each in said if not overlaps(each[1], each[2], self.out.used)]
                said = [each for each in said if not self.can.is_figure_besides(*each)]
                said = of_one_table(said, self._figures(said))
                chosen = list(dict.fromkeys(self.vocabulary.meant(param.nouns, name) for name, _, _ in said))
                self.out.telling += len(chosen)
                groups += [(start, end) for _, start, end in said]
                self.out.used += [(start, end) for _, start, end in said]
                if not chosen and param.required:
                    chosen = self._filtered_fields() or list(names)
            elif {"order", "sort"} & set(param.stems):
                measures = self.vocabulary.names([stem("measure")], self.can.owners())
                grouped = any(_GROUPING & set(p.stems) and self.out.arguments.get(p.name) for p in self.tool.params)
                chosen = []
                grouped = grouped and "desc" in param.description and not is_ranked_within(self.clause, groups)
                if grouped and (ranked := ranking(self.clause, measures)) is not None:
                    chosen = [ranked[0]]
                    self.out.used += ranked[1]
            elif names:
                found = mentions(self.clause, self.can.spellings(param.nouns, names), self.out.used, ties=True)
                chosen = list(dict.fromkeys(self.vocabulary.meant(param.nouns, mention.name) for mention in found))
                self.out.used += [(mention.start, mention.end) for mention in found]
                self.out.telling += len(chosen)
                if not chosen and param.required:
                    chosen = list(names)
            else:
                chosen = self._joined_values(param)
            if chosen:
                self.out.arguments[param.name] = chosen

    def _figures(self, besides: list[tuple[str, int, int]]) -> list[Mention]:
        """The figures that are wanted, besides what is said already."""
        lists = [p for p in self._open("names") if not {*_GROUPING, "order", "sort"} & set(p.stems)]
        taken = [*self.out.used, *((start, end) for _, start, end in besides)]
        return [
            mention
            for param in lists
            for names in [tuple(map(str, param.enum)) or self.vocabulary.names(param.nouns, self.can.owners())]
            for mention in mentions(self.clause, self.can.spellings(param.nouns, names), taken, ties=True)
        ]

    def _filtered_fields(self) -> list[str]:
        found: list[str] = []
        for value in self.out.arguments.values():
            if isinstance(value, list):
                rows = [row for row in value if isinstance(row, dict)]
                found += [str(next(iter(row.values()))) for row in rows if row]
        return list(dict.fromkeys(found))

    def _is_item(self, param: Param, value: Value) -> bool:
        told = param.required or fits.cue_of(param, value, self.clause)
        return bool(told) and fits.affinity(param, value, self.clause) >= 0.5

    def _joined_values(self, param: Param) -> list[Any]:
        """The first run of values joined by commas and "and", for a list whose valid items nobody has named."""
        numeric = "string" not in str(param.item_schema.get("type", "string"))
        kinds = ("number",) if numeric else ("quoted", "code", "name", "email", "phrase")
        values = [v for v in self.can.values(param) if v.kind in kinds and (numeric or self._is_item(param, v))]
        # "Delete 3 users" is none that is called 3.
        if not values or (numeric and is_of_many(self.tool, param, values[0], self.clause)):
            return []
        runs = [[first, *self.can.coordinated(first, values)] for first in values]
        run = max(runs, key=len)
        self.out.used += [(value.start, value.end) for value in run]
        self.out.given += [] if numeric else [(param, run[0])]
        return [plain_number(value.text) if numeric else self.can.render(param, value) for value in run]

    def _fill_single(self) -> None:
        """Hands out the values one by one, the best fitting pair of parameter and value first."""
        scored = []
        given: list[tuple[Param, Value]] = []
        wanted = [p for p in self._open("text") if p.required and not fits.is_free_text(p) and not fits.is_date(p)]
        for param in self._open("text", "number"):
            names = self.can.names(param)
            if param.enum or (names and any(param in group for group in self._paired)):
                continue
            elsewhere = self.can.told_elsewhere(param)
            for value in self.can.values(param):
                strange = names and value.kind == "phrase" and self.vocabulary.is_listed(param.nouns)
                if strange and closest(value.text, names) is None:
                    continue
                if value.kind == "phrase" and self.box.is_choice_of_another(param, value.text.lower()):
                    continue
                strange = is_strange(self.tool, param, value, self.clause) or (
                    self.tool.may_change and self.can.is_own(value)
                )
                strange |= is_of_many(self.tool, param, value, self.clause) or self.can.is_of_a_kind(param, value)
                if strange or is_led_astray(self.tool, param, value, self.clause):
                    continue
                if value.text in self.out.unknown or (elsewhere and value.kind in ("name", "phrase", "quoted")):
                    continue
                score = fits.affinity(param, value, self.clause)
                score += 1.0 if not score and is_numbered(self.tool, param, value, self.clause) else 0.0
                score -= 0.1 if names and param.shape == "text" else 0.0
                score -= 0.3 if value.kind == "phrase" and self.can.is_own(value) else 0.0
                score -= 0.5 if self.can.is_mere(param, value, wanted) else 0.0
                least = 0.5 if param.required else 1.2
                if score >= least:
                    scored.append((score, param, value))
        for _, param, value in sorted(scored, key=lambda item: (-item[0], not item[1].required, item[2].start)):
            if param.name in self.out.arguments or overlaps(value.start, value.end, self.out.used):
                continue
            if fits.is_free_text(param) and value.kind != "quoted" and param.required:
                continue
            if not param.required and any(value in self.can.coordinated(v, self.can.values(p)) for p, v in given):
                continue
            end = unit_end(param, value, self.clause) if param.shape == "number" else value.end
            start = fits.named_from(param, value, self.clause)
            self._set(param, self.can.render(param, value), start, end)
            self.out.doubtful += bool(self.can.names(param))
            given.append((param, value))
        self.out.given += given
        self.out.unclear = which_is_which(given, scored, self.clause, self.tool.may_change)
        several = sum(param.shape == "number" for param in self.tool.required) > 1
        for param, value in given:
            if several and param.shape == "number":
                # Of "the gcd of 12, 18 and 30" two calls are none.
                continue
            self._spread(value, self.can.coordinated(value, self.can.values(param)))

    def _fill_free_text(self) -> None:
        for param in self._open("text"):
            if self.clause.reason and "reason" in param.stems and not param.enum:
                self.out.arguments[param.name] = self.clause.reason
            if self.clause.reason or param.enum or not fits.is_free_text(param) or not param.required:
                continue
            free, values = _FREE.search(self.clause.text), self.can.values(param)
            quoted = next((value for value in values if value.kind == "quoted"), None)
            if quoted is not None:
                self._set(param, quoted.text, quoted.start, quoted.end)
                self.out.given.append((param, quoted))
            elif free and fits.is_search(param):
                self._fill_search(param, free)
            elif free and not overlaps(free.start(1), free.end(1), self.out.used):
                self._set(param, free[1].rstrip(" ?.!"), free.start(), free.end(1))
            elif values:
                best = max(values, key=lambda value: (value.kind != "number", value.end - value.start))
                self._set(param, best.text, best.start, best.end)
                self.out.given.append((param, best))

    def _fill_search(self, param: Param, said: re.Match[str]) -> None:
        """What to search for, up to what another argument has taken; not with a condition that no search knows of."""
        end = min([start for start, _ in self.out.used if start > said.start(1)], default=said.end(1))
        text = _COUNTED.sub("", self.clause.text[said.start(1) : end]).rstrip(" ?.!,")
        if text and not is_conditional(text) and not overlaps(said.start(1), end, self.out.used):
            self._set(param, text, said.start(), end)
