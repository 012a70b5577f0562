"""Choosing the tool that answers a clause: by its words, by what it can be given, by what it leaves unexplained.

`plan` asks it; `toolbox` scores words and `arguments` says what a clause gives a tool.
"""

import re
from dataclasses import dataclass

from treadle.models.offline.grammar.arithmetic import is_chain
from treadle.models.offline.grammar.change import find_change
from treadle.models.offline.grammar.comparison import find_comparison
from treadle.models.offline.grammar.degrees import degree_of
from treadle.models.offline.grammar.english import CHANGES, FINAL_WORDS, GROUPS, PLAIN_VERBS, UNDOING, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import alike, is_function_word, is_verb, names_match, parts, singular, stem
from treadle.models.offline.plan.account import account
from treadle.models.offline.plan.addresses import receives, tells_address
from treadle.models.offline.plan.arguments import fill
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.naming import is_strong
from treadle.models.offline.plan.numbers import counts
from treadle.models.offline.plan.operands import operation_of
from treadle.models.offline.plan.orders import asks_whether, is_its_name, lacks_particle, shows, tells
from treadle.models.offline.plan.rivals import (
    commands_another,
    is_called_by_another,
    is_told_by_another,
    many_are_meant,
)
from treadle.models.offline.plan.structures import content_stems, overlaps
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox, tells_it
from treadle.models.offline.plan.vocabulary import Vocabulary

_ALL = word_set("all every whole entire inventory stock worth value hand left available remaining balance holdings")
_HOW_MUCH = re.compile(r"^\W*(?:and )?how much (?:is|are|for|would|will)\b(?! (?:the|our|my|your)\b)", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow many ((?:[\w-]+ ?){1,4})", re.IGNORECASE)
_COUNTED_AT = re.compile(r"^(?=.*\bhow many\b|\W*(?:are|is|do|does)\b).*\bat [$€£]?\d", re.IGNORECASE)
_MANY = re.compile(
    r"^\W*(?:and |please )*(?:which|what|list|show)(?: me)?(?: all| the)* (?:\w+ )??(\w+s)\b", re.IGNORECASE
)
_LISTING = re.compile(r"^\W*(?:and )?(?:what|which) \w+ (?:does|do|has|have|are|is|can|exist)\b", re.IGNORECASE)
_COUNTING = frozenset(stem(word) for word in word_set("count total number sum"))
_TELLS_HOW_MANY = re.compile(r"\W*(?:(?:tells|the|counts) )*(?:number|count|how many|total|sum)\b", re.IGNORECASE)
_HANDED_IN = frozenset(
    stem(word)
    for word in word_set(
        "answer result output summary response reply text content message conclusion final solution value"
    )
)
_NUMBERS = frozenset({"number", "integer"})


@dataclass(frozen=True)
class ChosenTool:
    """A tool for a clause, how well it fits, and what the clause gives it.

    `source` is the tool that is to give it the rest, where that is settled; `spoken` is whether the clause has words
    for it, beyond what only fills arguments.
    """

    tool: KnownTool
    score: float
    filling: Filling
    source: KnownTool | None = None
    spoken: bool = True


class Chooser:
    """Chooses among the tools of a box, given the names known so far."""

    def __init__(self, box: Toolbox, vocabulary: Vocabulary) -> None:
        self.box = box
        self.vocabulary = vocabulary

    def choose(self, clause: Clause, forced: bool = False) -> ChosenTool | None:
        """The tool that fits `clause` best; None if none is about it.

        Args:
            clause: the part of the question.
            forced: take the best even if its words say nothing for it.
        """
        choices = [choice for tool in self.box.tools if (choice := self._weigh(tool, clause, forced)) is not None]
        if not choices:
            return None
        best = max(choices, key=lambda choice: choice.score)
        if best.filling.doubtful:
            sure = [other for other in choices if not other.filling.doubtful and not other.filling.missing]
            sure = [other for other in sure if other.score > 0 and _shares(other.filling, best.filling, clause)]
            best = max(sure, key=lambda choice: choice.score, default=best)
        if not forced and any(_is_as_likely(other, best, clause) for other in choices):
            # "Archive Bills" is said of a mail as of a folder.
            return None
        return self._answered_before(best, choices, clause) or self._carried_on(best, clause) or best

    def providers(self, tool: KnownTool, param: Param, clause: Clause) -> list[KnownTool]:
        """The tools whose results may hold a value for `param`, the likeliest first."""
        found = []
        stems = content_stems(clause)
        for other in self.box.tools:
            match = supplies(other, param) if other.name != tool.name and other.change is None else 0.0
            if counts(param) and not _asks_for_all(clause):
                continue
            if match > 0 and not is_final(other):
                found.append((match + 0.1 * self.box.score(other, stems), other))
        return [other for _, other in sorted(found, key=lambda pair: -pair[0])]

    def lister(self, param: Param, tool: KnownTool) -> KnownTool | None:
        """A tool that can be called with nothing and lists what `param` may be."""
        wanted = set(param.nouns)
        if param.shape in ("filters", "mapping"):
            wanted |= {stem(key) for key in param.item_schema.get("properties", {})} - {"op", "value"}
        for other in self.box.tools:
            words = {word for word, weight in other.weights.items() if weight >= 1.2}
            if other.name != tool.name and other.lists and other.change is None and words & wanted:
                return other
        return None

    def _weigh(self, tool: KnownTool, clause: Clause, forced: bool) -> ChosenTool | None:
        tools = self.box.tools
        commanded = clause.command or (clause.opening if clause.opening in (tool.change or ()) else None)
        expression = clause.arithmetic is not None and any(param.is_expression for param in tool.params)
        if not forced and (is_final(tool) or not _permitted(tool, commanded, expression)):
            return None
        sums = expression and is_chain(clause.text)
        if not forced and not sums and tool.change is None and commands_another(commanded or clause.opening, tools):
            return None
        if not forced and tool.may_change and lacks_particle(clause, tool):
            return None
        other = _takes_back(tool, clause) or asks_whether(clause) or is_called_by_another(tool, commanded or "", tools)
        if not forced and tool.change is not None and other:
            return None
        another = tool.change is None and (
            is_told_by_another(tool, clause, tools) or many_are_meant(tool, clause, tools)
        )
        if not forced and another:
            return None
        if not forced and commanded == "list" and tool.name_stems[:1] == ("count",):
            return None
        filling = fill(tool, clause, self.vocabulary, self.box)
        if not forced and ((operation_of(tool) is not None and filling.missing) or _is_of_one(filling, clause)):
            return None
        feeders = self._feeders(tool, filling, clause)
        if not forced and feeders and tool.change is not None and tells(commanded or ""):
            # "List the price of the bike" puts nothing up for sale at it.
            return None
        fed = [fill(feeder, clause, self.vocabulary, self.box) for feeder in feeders]
        used = [*filling.used, *(span for each in fed for span in each.used)]
        said = frozenset(content_stems(clause))
        stems = [t.stem for t in clause.tokens if t.stem in said and not overlaps(t.start, t.end, filling.used)]
        operation = operation_of(tool) is not None
        stems += _implied(tool, clause)
        score = self.box.score(tool, stems, feeders) + (8.0 if expression or operation else 0.0)
        if tool.change is not None and commanded in tool.change:
            score += 3.0
        if tool.lists and _LISTING.match(clause.text) and any(self.vocabulary.is_kind(word) for word in stems):
            score += 3.0
        if any(param.shape == "text" for param in filling.missing) and find_change(clause) is not None:
            score -= 8.0
        told = forced or expression or operation
        if not told and not self._relevant(tool, clause, stems, filling, used, feeders):
            return None
        left = [value for value in clause.values if not overlaps(value.start, value.end, used)]
        unused = sum(2.0 if value.kind == "number" and not clause.is_yes_or_no else 1.0 for value in left)
        lost = sum(0.5 if self._obtainable(tool, param, clause) else 2.5 for param in filling.missing)
        score += 0.5 * len(filling.arguments) + 1.5 * filling.telling - 1.5 * unused - lost - 0.5 * bool(filling.spread)
        if tool.params and all(param.shape == "number" for param in tool.params) and not filling.missing:
            score += 1.0
        measured = find_comparison(clause, used)
        spans = [*used, *(measured.spans if measured is not None else ())]
        remaining = account(clause, [tool, *feeders], spans)
        score -= 4.0 * len(remaining.turning) + len(remaining.spare)
        spoken = expression or max((tool.fit(word) for word in stems), default=0.0) >= 1.0
        return ChosenTool(tool, score, filling, spoken=spoken)

    def _feeders(self, tool: KnownTool, filling: Filling, clause: Clause) -> list[KnownTool]:
        """The tools that would give what the clause does not: their words are explained when `tool` is chosen."""
        found = [self.providers(tool, param, clause)[:1] for param in filling.missing]
        return [each for providers in found for each in providers]

    def _relevant(
        self,
        tool: KnownTool,
        clause: Clause,
        stems: list[str],
        filling: Filling,
        used: list[tuple[int, int]],
        feeders: list[KnownTool],
    ) -> bool:
        """Whether the clause is about the tool: a word of it speaks for the tool, and most words are accounted for."""
        fits = {word: max([tool.fit(word), *(0.9 * feeder.fit(word) for feeder in feeders)]) for word in stems}
        best = max(fits.values(), default=0.0)
        ordered = clause.opening in (tool.change or ()) and clause.opening in tool.called
        if (ordered or is_its_name(clause, tool)) and not filling.missing:
            # "Give KA-77 to Lutz" has no other word for the tool, and needs none, nor has "Read a.txt" for `read`.
            best = max(best, 1.0)
        if best < 1.0 and not filling.telling and not _complete(tool, filling, clause, best):
            return False
        explained = unexplained = 0.0
        for token in clause.tokens:
            if overlaps(token.start, token.end, used) or fits.get(token.stem, 0.0) > 0:
                explained += 1
            elif token.stem in stems:
                idle = token.low in PLAIN_VERBS or _is_asking(token.stem) or is_verb(token.text)
                unexplained += 0.4 if idle and (token.low != clause.command or shows(clause, tool)) else 1
        measured = find_comparison(clause, used)
        known = [*used, *(measured.spans if measured is not None else ())]
        unexplained += sum(not overlaps(v.start, v.end, known) for v in clause.values)
        return explained > unexplained

    def _obtainable(self, tool: KnownTool, param: Param, clause: Clause) -> bool:
        listed = bool(self.vocabulary.names(param.nouns))
        return bool(self.providers(tool, param, clause)) or (not listed and self.lister(param, tool) is not None)

    def _answered_before(self, best: ChosenTool, choices: list[ChosenTool], clause: Clause) -> ChosenTool | None:
        """The tool that `best` would take its input from, if nothing in the clause asks for more than that one tells:
        "Which washers are free?" is answered by the list, and not by what another tool says of what is on it."""
        feeders = self._feeders(best.tool, best.filling, clause)
        if best.tool.change is not None or len(feeders) != 1:
            return None
        before = next((each for each in choices if each.tool is feeders[0] and not each.filling.missing), None)
        # How many there are, a list tells as well.
        words = [word for word in content_stems(clause) if word != "many"]
        if before is None or any(best.tool.fit(word) > before.tool.fit(word) for word in words):
            return None
        alone = account(clause, [before.tool], before.filling.used)
        both = account(clause, [best.tool, before.tool], [*best.filling.used, *before.filling.used])
        whole = len(alone.turning) <= len(both.turning) and len(alone.spare) <= len(both.spare)
        # "How many are in stock at 7?" has no word for what so many would cost.
        whole = whole or (_COUNTED_AT.search(clause.text) is not None and not _implied(best.tool, clause))
        return before if whole else None

    def _carried_on(self, best: ChosenTool, clause: Clause) -> ChosenTool | None:
        """A tool that takes what `best` returns and what `best` left unused: a price that is wanted in euros."""
        used = list(best.filling.used)
        for feeder in self._feeders(best.tool, best.filling, clause):
            used += fill(feeder, clause, self.vocabulary, self.box).used
        unused = [v for v in clause.values if v.kind != "number" and not overlaps(v.start, v.end, used)]
        lacking = any(param.shape == "text" for param in best.filling.missing)
        if not unused or lacking or best.tool.change is not None:
            return None
        for tool in self.box.tools:
            if tool.name == best.tool.name or tool.change is not None or is_final(tool):
                continue
            filling = fill(tool, clause, self.vocabulary, self.box)
            takes = any(overlaps(value.start, value.end, filling.used) for value in unused)
            if takes and filling.missing and all(supplies(best.tool, param, True) > 0 for param in filling.missing):
                return ChosenTool(tool, best.score, filling, best.tool)
        return None


def _implied(tool: KnownTool, clause: Clause) -> list[str]:
    """Words that a clause means without saying them, or says in a name: "how much are 12 pears?" asks for a price."""
    priced = ["pric"] if _HOW_MUCH.match(clause.text) and clause.arithmetic is None else []
    named = [token.stem for token in clause.tokens if token.stem in tool.name_stems and token.text[:1].isupper()]
    said = frozenset(content_stems(clause)) if named else frozenset()
    degree = degree_of(clause.text)
    measured = [word for word in tool.name_stems if degree is not None and word in degree[1]]
    return [*priced, *measured, *(word for word in named if word not in said)]


def _asks_for_all(clause: Clause) -> bool:
    """Whether a clause means as many as there are, so that a tool may be asked how many that is."""
    return any(token.low in _ALL for token in clause.tokens)


def is_final(tool: KnownTool) -> bool:
    """Whether the tool is the one to hand in the answer with."""
    # By its words and not their stems: "donations" are not "done".
    called = parts(tool.name)
    return (
        called[:1] != ()
        and called[0] in FINAL_WORDS | {"submit"}
        and all(word in FINAL_WORDS | {"submit", "task", "run", "with"} for word in called)
        # "Complete a task" that is named is another matter.
        and all(_HANDED_IN & {*param.nouns, *param.stems} for param in tool.required)
    )


def _permitted(tool: KnownTool, commanded: str | None, expression: bool) -> bool:
    """A tool that changes something must be commanded; a command to change something is for no other tool."""
    if tool.change is not None:
        return commanded is not None and commanded in tool.change
    if commanded is None or expression or commanded in PLAIN_VERBS:
        return True
    changes = any(commanded in group or commanded.removeprefix("re") in group for group in CHANGES)
    # "Lock Teddington" asks for nothing of that lock.
    named = commanded in parts(tool.name) or not is_strong(commanded)
    return not changes or (named and tool.weights.get(stem(commanded), 0.0) > 0)


def _is_ordered_alone(choice: ChosenTool, clause: Clause) -> bool:
    """Whether nothing but the verb of an order speaks for a tool: of "Send Ann 'Hi'" it may be a mail as a text."""
    rest = [t for t in clause.tokens if t.low != clause.opening and not overlaps(t.start, t.end, choice.filling.used)]
    return not any(choice.tool.fit(token.stem) >= 1.0 for token in rest if not is_function_word(token.text))


def _is_as_likely(other: ChosenTool, best: ChosenTool, clause: Clause) -> bool:
    """Whether of two changes nothing says which is meant."""
    return (
        other is not best
        and other.tool.change is not None
        and best.tool.change is not None
        and not best.filling.missing
        and (_is_ordered_alone(best, clause) if other.filling.missing else other.score == best.score)
        and {*other.filling.used} == {*best.filling.used}
    )


def _takes_back(tool: KnownTool, clause: Clause) -> bool:
    """Whether a clause undoes what the tool does: "cancel my cancellation", "stop the deletion of O-17"."""
    named = set(tool.name.lower().replace("-", "_").split("_"))
    nouns = [token for token in clause.tokens if token.low in UNDOING and token.low not in named]
    return bool(nouns) and clause.command is not None and clause.command not in PLAIN_VERBS


def _shares(left: Filling, right: Filling, clause: Clause) -> bool:
    """Whether both take the same written value."""
    return any(
        overlaps(value.start, value.end, left.used) and overlaps(value.start, value.end, right.used)
        for value in clause.values
    )


def _is_of_one(filling: Filling, clause: Clause) -> bool:
    """Whether a tool tells of one thing by its identifier, of which the clause asks how many there are."""
    counted = _HOW_MANY.search(clause.text)
    lacking = {word for param in filling.missing if param.stems[-1:] == ("id",) for word in param.nouns}
    if counted is not None and any(stem(word) in lacking for word in counted[1].split()):
        return True
    many = _MANY.match(clause.text)
    return many is not None and stem(many[1]) in lacking and singular(many[1].lower()) != many[1].lower()


def _complete(tool: KnownTool, filling: Filling, clause: Clause, fit: float) -> bool:
    """Whether the clause gives a tool of several parameters all that it requires, and nothing else; two will do if some
    word speaks for the tool (`fit`) and the question is not how two figures compare."""
    rest = [value for value in clause.values if not overlaps(value.start, value.end, filling.used)]
    return (
        not filling.missing
        and fit >= 0.5
        and len(tool.required) >= (2 if clause.values and not clause.is_yes_or_no else 3)
        and not rest
    )


def _is_asking(word: str) -> bool:
    return any(word in {stem(other) for other in group} for group in GROUPS)


def supplies(tool: KnownTool, param: Param, loosely: bool = False) -> float:
    """How likely the tool's result holds a value for `param`, from 0 to 1.

    Args:
        tool: the tool.
        param: the parameter.
        loosely: let any one number do for a number.
    """
    numeric = param.shape == "number"
    best = 0.0
    counts_them = bool(_COUNTING & set(tool.name_stems)) or _TELLS_HOW_MANY.match(tool.spec.description) is not None
    if param.stems[-1:] == ("id",) and counts_them:
        # How many there are is the identifier of none.
        return 0.0
    for output in tool.outputs:
        if numeric and output.types and not output.types & (_NUMBERS | {"string"}):
            continue
        if not numeric and output.types and not output.types & {"string", "integer"}:
            continue
        exact = names_match(output.stems, param.stems)
        if param.stems[-1:] == ("id",) and len({*output.stems, *param.stems}) > len(param.stems):
            # The identifier of a book is no employee's.
            exact = 0.0
        own = output.stems == ("id",) and set(param.nouns) <= set(tool.name_stems)
        near = names_match(output.stems, param.nouns) if numeric or param.stems[-1:] != ("id",) else 0.0
        same_kind = near >= 1.0 and output.stems[-1] == param.nouns[-1]
        best = max(
            best,
            exact if exact >= 0.75 else 0.0,
            0.9 * own,
            near * 0.9 if same_kind or (numeric and near > 0.3) else 0.0,
        )
    if not tool.outputs and not numeric and tells_it(tool, param):
        return 0.9
    if not tool.outputs and numeric and param.nouns:
        head = param.nouns[-1]
        best = max((alike(word, head) * 0.6 for word in tool.name_stems), default=0.0)
        best = max(best, 0.5 if head in tool.told else 0.0)
    if not best and loosely and numeric:
        best = (
            0.3
            if not tool.outputs or any(output.types & _NUMBERS or "price" in output.name for output in tool.outputs)
            else 0.0
        )
    if receives(param) and tells_address(tool):
        return 0.9
    given = {other.name for other in tool.params}
    return 0.0 if param.name in given else best
