"""What small words make of a question: who does what to whom, what may or should be, what is counted, per what.

"Which books may Max borrow?" has no word that a tool of his loans does not speak of, and asks for something else.
Called by `account`, which forbids an answer, or says first what it leaves out.
"""

import itertools
import re
from collections.abc import Callable, Iterator

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import IDLE_VERBS
from treadle.models.offline.grammar.words import Token, is_function_word, is_verb, parts, singular, stem, tokens
from treadle.models.offline.plan.doing import AUXILIARIES, Doing, Span
from treadle.models.offline.plan.numbers import counts
from treadle.models.offline.plan.operands import operation_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

_MODALS = word_set("should shall must may might ought can could will")
_ASKING_LEAVE = re.compile(
    r"\b(?:(?:can|could|will|would|may) you|(?:can|could|may|might|shall) (?:i|we|one|somebody|someone|anyone) "
    r"(?:please |also |just )?(?:ask|see|have|get|know|find|check|look|learn|read|view|expect))\b",
    re.IGNORECASE,
)
_COMING_TO = re.compile(r"\b(?:will|can|could)\b.*\b(?:cost|come to|amount to|be worth|total)\b", re.IGNORECASE)
_FUTURE = word_set("forecast next due upcom com predict tomorrow futur schedul ahead expect")
# To have, hold or cost something is so; to need, want or like it is another matter.
_BEING = word_set(
    "have has had got get gets exist exists contain contains amounts come comes go goes run runs work works "
    "stand stands happen happen hold holds keep keeps carry concern follow following"
)
_COUNTED = re.compile(r"\b(?:how many|number of|list (?:the|all)|which|what are the) ([\w-]+)", re.IGNORECASE)
_STATE_WORDS = word_set(
    "open closed missed sold lost won overdue unread pending active inactive done finished late free busy occupied "
    "broken damaged cancelled delayed paid unpaid taken booked reserved absent sick failed expired blocked hidden"
)
_ANY = word_set("all total number num count list current available of the get stock")
_KIN = {
    "done": ("finished", "completed"),
    "late": ("delayed", "overdue"),
    "free": ("available", "vacant", "empty", "left"),
    "missed": ("miss",),
    "sold": ("sell",),
    "lost": ("lose",),
    "won": ("win",),
    "failed": ("fail",),
}
_CHAIN = re.compile(r"\b(\w+) of (?:the|an?) (\w+) of (?:the|an?) (\w+)", re.IGNORECASE)
_WORTH = re.compile(r"\b(all|whole|entire)\b.*\b(?:worth|value|cost)\b", re.IGNORECASE)
_TOTALS = word_set("total sum worth valu valuation stock inventory all")
_WISHES = word_set("need needs want wants like likes love loves use uses know knows understand think thinks")
_WE = word_set("we i you they there it")
_HOW_TO = re.compile(r"^\W*(?:and |so )?(how) (?:do|does|did|can|could|should|would|must|to)\b", re.IGNORECASE)
_WAYS = word_set(
    "compar differ differenc explain explan step instruct guid manual recip way develop trend rout direct path"
)
_WHO_HAS = word_set("have has had exist exists")
_GOT = word_set("buy get have purchase order own pay be")
_THINGS = re.compile(r"^\W*(?:(?:which|what|list|show|name|all|the)\s+)*(\w+)", re.IGNORECASE)
_PRICED = re.compile(r"\b(?:costs?|price[sd]?|pay|pays|charged?|fees?|expensive)\b[^.?!]*?\bto\s+(\w+)", re.IGNORECASE)
_OWN = ("'s ", "’s ", "' ", "’ ")
_WHOSE_OWN = re.compile(r"['’]s (?P<whose>[a-z]+)['’]s (?P<what>[a-z]+)", re.IGNORECASE)
_OF_WHOSE = re.compile(r"\b(?P<what>[a-z]+) (?:of|for) [\w .-]+?['’]s? (?P<whose>[a-z]+)\b", re.IGNORECASE)
_EACH = word_set("each every")
_WHOLE = word_set("all each every both")
_STATES = word_set(
    "present good great fine quick sure current right whole entire complete full exact precise available"
)
_IS = word_set("is are was were be been")
_NOW = word_set("current currently now latest today")
_PAST = word_set(
    "was were did had has have came made won lost sold spent paid wrote took ran left been history past last previous "
    "since between during transactions log absent"
)
_USED_TO = re.compile(r"\b(?:used?|accustomed) to (?=[a-z])", re.IGNORECASE)
_WITH = re.compile(
    r"^\W*(?:and |so )?how much (?:is|are|will|would) [^?.!]*?\d[^?.!]*? (with|including|incl)\b", re.IGNORECASE
)
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_PRICES = frozenset(stem(word) for word in word_set("price rate fare"))
_COUNTING = word_set("count counts number numbers total quantity headcount tally balance amount")


class Senses(Doing):
    """What the small words of a clause mean to the tools that are called for it; made as `Spoken` is."""

    def turning(self) -> list[Span]:
        """The stretches that make the question another one."""
        rules: tuple[Callable[[], Iterator[Span]], ...] = (
            self._turned_round,
            self._chosen_by_somebody,
            self._twice_related,
            self._counted_otherwise,
            self._priced_otherwise,
            self._each_of_others,
            self._taken_is_asked_for,
            self._owned,
            self._of_whose,
            self._summed,
            self._between_one,
            self._of_another_state,
            self._whole_worth,
            self._of_what_is_between,
            self._got,
            self._done_the_other_way,
            self._with_it,
        )
        return [span for rule in rules for span in rule()]

    def spare(self) -> list[Span]:
        """The stretches that no tool speaks of, although their words are plain."""
        rules = (
            self._how_to,
            self._may_or_should,
            self._wanted,
            self._liked,
            self._is_so,
            self._was,
            self._broken_down,
        )
        return [span for rule in rules for span in rule()]

    def _with_it(self) -> Iterator[Span]:
        """What an amount is with something, of tools that tell what that alone is: "How much is 60 with a 20% tip?"."""
        match = _WITH.match(self.clause.text)
        if match is not None and match[1].lower() not in self.wording and not overlaps(*match.span(1), self.used):
            yield match.span(1)

    def _taken_is_asked_for(self) -> Iterator[Span]:
        """The things that are asked for where they are what the tools take, and the clause has given one already: of
        "Which employees has Sara as manager?" the employees."""
        match = _THINGS.match(self.clause.text)
        if match is None or singular(match[1].lower()) == match[1].lower():
            return
        if stem(match[1]) in self.takes - self._names() and self.used and not overlaps(*match.span(1), self.used):
            yield match.span(1)

    def _owned(self) -> Iterator[Span]:
        """The same of somebody: "Omar's employees"."""
        for token in self.tokens:
            if token.stem not in self.takes - self._names() or singular(token.low) == token.low or self._is_used(token):
                continue
            if any(self.clause.text[end : token.start] in _OWN for _, end in self.used):
                yield token.start, token.end

    def _of_whose(self) -> Iterator[Span]:
        """What is asked of somebody whom a tool only names: the age in "Jumbo's keeper's age" is none of Jumbo's."""
        for match in itertools.chain(_WHOSE_OWN.finditer(self.clause.text), _OF_WHOSE.finditer(self.clause.text)):
            between, asked = match["whose"], match["what"]
            told = stem(between) in self.own and stem(between) not in self._names() and stem(asked) in self.own
            if told and not overlaps(*match.span("whose"), self.used):
                yield match.span("whose")

    def _summed(self) -> Iterator[Span]:
        """The numbers that are to be added or subtracted, where no tool does: of "the sum of 4 and 5" neither is a
        quantity."""
        if re.search(r"\d\s*[-+]\s*-?\d", self.clause.arithmetic or "") is None:
            return
        if any(operation_of(tool) or any(param.is_expression for param in tool.params) for tool in self.tools):
            return
        if all(sum(param.shape == "number" for param in tool.params) < 2 for tool in self.tools):
            return
        numbers = [(v.start, v.end) for v in self.clause.values if v.kind == "number"]
        if sum(overlaps(*span, self.used) for span in numbers) > 1:
            yield from numbers

    def _between_one(self) -> Iterator[Span]:
        """A "between" with one end only: two things that a tool is asked about one after the other are no ends."""
        for token in self.tokens:
            if token.low != "between" or self._is_used(token) or token.low in self.wording:
                continue
            if re.search(r"\band\b|[-–&]|\bto\b", self.clause.text[token.end :]) is None:
                yield token.start, token.end

    def _twice_related(self) -> Iterator[Span]:
        """The second of two of one word, such as in "the manager of Sara's manager": a tool is asked once."""
        free = [token for token in self.tokens if token.stem in self.own and not self._is_used(token)]
        for place, token in enumerate(free):
            for other in free[:place]:
                between = self.clause.text[other.end : token.start]
                if (
                    other.stem == token.stem
                    and re.search(r"['’]s?\s|\bof\b", between)
                    and not is_function_word(token.text)
                ) and not re.search(r"\b(?:and|or|than)\b|,", between):
                    yield token.start, token.end

    def _counted_otherwise(self) -> Iterator[Span]:
        """The things of a "how many" of which the tools tell no number: they speak of one, as taken or told."""
        match = _HOW_MANY.search(self.clause.text)
        if match is None or self._filtered():
            return
        run: list[Token] = []
        for token in (each for each in self.tokens if each.start >= match.end()):
            verb = is_verb(token.text) and singular(token.low) == token.low
            if is_function_word(token.text) or verb or (run and self._is_used(token)):
                break
            run.append(token)
        if not run or self._is_used(run[-1]) or run[-1].stem not in self.own or singular(run[-1].low) == run[-1].low:
            return
        head = run[-1]
        given = [v for v in self.used_values if v.kind == "number" and v.start > head.end]
        if any(self.clause.words_after(v.end, 1) in ((head.low,), (singular(head.low),)) for v in given):
            # "How many days will it rain in the next 5 days?" asks for no number of those that are told of.
            yield match.start(), head.end
            return
        plural = any(stem(word) == head.stem and singular(word) != word for word in self.wording)
        if not plural and not self._is_counted(head.stem):
            yield match.start(), head.end

    def _is_counted(self, word: str) -> bool:
        """Whether the tools tell a number of things by their name: "seat count", "number of seats"."""
        texts = [self.text, *(" ".join(parts(t.name)) for t in self.tools)]
        texts += [" ".join(parts(output.name)) for tool in self.tools for output in tool.outputs]
        for said in ([each.low for each in tokens(text) if not is_function_word(each.text)] for text in texts):
            for left, right in itertools.pairwise(said):
                if {stem(left), stem(right)} & {word} and {left, right} & _COUNTING:
                    return True
        return False

    def _priced_otherwise(self) -> Iterator[Span]:
        """What something costs to do, other than to get it: "What does it cost to ship 3 gadgets?"."""
        match = _PRICED.search(self.clause.text)
        if match is not None and is_verb(match[1]) and match[1].lower() not in _GOT and stem(match[1]) not in self.told:
            yield match.span(1)

    def _each_of_others(self) -> Iterator[Span]:
        """What a figure is wanted for each of, of a tool that tells one: "How many does each assignee have?"."""
        if self.clause.is_yes_or_no:
            whole = [t for t in self.tokens if t.low in _WHOLE and not self._is_used(t) and t.stem not in self.told]
            opens = self.tokens[0].low in _IS | {"do", "does", "did", "have", "has"}
            yield from ((t.start, t.end) for t in whole if opens and not self._is_used(self._after(t)))
        listed = self._names()
        for token in self.tokens:
            after = self._after(token)
            if token.low not in _EACH or after is None or self._is_used(after):
                continue
            if after.stem in self.takes - listed:
                yield token.start, after.end

    def _how_to(self) -> Iterator[Span]:
        """The "how" of a question for the way in which something is done."""
        match = _HOW_TO.match(self.clause.text)
        if match is not None and not _WAYS & self.own and not self._filtered():
            yield match.span(1)

    def _may_or_should(self) -> Iterator[Span]:
        """A word by which something may, should or will be so, where the tools tell what is."""
        if "comparison" in self.told or self._measures():
            return
        leave = [match.span() for match in _ASKING_LEAVE.finditer(self.clause.text)]
        for token in self.tokens:
            if token.low not in _MODALS or self._is_value(token) or self._is_used(token):
                continue
            if overlaps(token.start, token.end, leave) or token.low in self.wording:
                continue
            if token.low == "will" and (_FUTURE & self.told or _COMING_TO.search(self.clause.text)):
                continue
            yield token.start, token.end

    def _measures(self) -> bool:
        """Whether the clause holds a figure against a number: "Can we ship 80 gadgets?" """
        numbers = [v for v in self.clause.values if v.kind == "number"]
        return self.clause.is_yes_or_no and any(overlaps(v.start, v.end, self.used) for v in numbers)

    def _wanted(self) -> Iterator[Span]:
        """A plain verb that somebody or something does: "How many gadgets do we need?", "Who owns B-7?"."""
        leave = [match.span() for match in _ASKING_LEAVE.finditer(self.clause.text)]
        for place, token in enumerate(self.tokens):
            if token.low not in IDLE_VERBS or self._is_used(token) or token.stem in self.told:
                continue
            if overlaps(token.start, token.end, leave):
                continue
            before = self._before(token)
            if before is not None and before.low == "who" and token.low not in _WHO_HAS:
                yield token.start, token.end
            does = next((each for each in reversed(self.tokens[:place]) if each.low in AUXILIARIES), None)
            if does is None or before is does or before is None:
                continue
            subject = [each for each in self.tokens[:place] if each.start >= does.end]
            if len(subject) > 4 or any(is_verb(each.text) and not self._is_value(each) for each in subject):
                continue
            if subject[0].low == "you" or re.match(r"\s+to\b", self.clause.text[token.end :]):
                continue
            named = any(self._is_value_used(each) for each in subject)
            owned = token.low in word_set("hold holds keep keeps carry own owns") and not named
            if not owned and (token.low not in _BEING or (named and token.low in ("hold", "keep", "carry"))):
                yield token.start, token.end

    def _of_another_state(self) -> Iterator[Span]:
        """The things of which a number or a list is wanted, where the tools tell only of those in one state: of "How
        many issues are there?" how many are open."""
        match = _COUNTED.search(self.clause.text)
        states = [word for tool in self.tools for word in parts(tool.name) if word in _STATE_WORDS]
        states += [word for tool in self.tools for word in self._narrowing(tool, match) if word not in states]
        said = {token.low for token in self.tokens}
        if match is None or self._filtered() or not states or match.group(1).lower() in _STATE_WORDS:
            return
        kin = {word for state in states for word in {state, *_KIN.get(state, ())}}
        if not kin & said and not any(singular(word) in said for word in kin):
            yield match.span(1)

    def _narrowing(self, tool: KnownTool, counted: re.Match[str] | None) -> list[str]:
        """The words of a tool's name that say which of the counted things it tells of: "vacant" in `vacant_flats`."""
        *before, head = parts(tool.name)
        if counted is None or _HOW_MANY.match(counted.group()) is None or stem(head) != stem(counted.group(1)):
            return []
        takes = {word for param in tool.params for word in param.nouns}
        return [word for word in before if not (word in _ANY or is_verb(word) or stem(word) in takes)]

    def _of_what_is_between(self) -> Iterator[Span]:
        """What is asked of a thing where the tools tell it of what belongs to that: of the age of a hive the age of its
        queen."""
        said = {token.stem for token in self.tokens}
        for told, between, of in _CHAIN.findall(self.text):
            asked = next((t for t in self.tokens if t.stem == stem(told) and not self._is_used(t)), None)
            if asked is not None and stem(of) in self.takes and stem(between) not in said | self.takes:
                yield asked.start, asked.end

    def _whole_worth(self) -> Iterator[Span]:
        """The "all" of what all of it is worth, of one tool, which tells what one is."""
        match = _WORTH.search(self.clause.text)
        if match is not None and len(self.tools) == 1 and not _TOTALS & self.told and not self._filtered():
            yield match.span(1)

    def _liked(self) -> Iterator[Span]:
        """A word for what somebody wishes, or for what is similar: "people like working here", "books like Emma"."""
        for token in self.tokens:
            before, after = self._before(token), self._after(token)
            if token.low not in _WISHES or before is None or token.stem in self.told or self._is_used(token):
                continue
            asking = before.low in _WE or (is_function_word(before.text) and before.low not in ("people", "one"))
            alike = token.low == "like" and (after is None or is_function_word(after.text))
            if not asking and not alike and not re.match(r"\s+to\b", self.clause.text[token.end :]):
                yield token.start, token.end

    def _is_so(self) -> Iterator[Span]:
        """A word that tells nothing beside a noun, and all behind one: "How many days was Will present?"."""
        for token in self.tokens:
            after = self._after(token)
            ends = after is None or after.low in ("in", "on", "at", "for", "of", "today", "now", "or", "and")
            if token.low not in _STATES or not ends or token.stem in self.told or self._is_used(token):
                continue
            if any(each.low in _IS for each in self.tokens if each.end <= token.start):
                yield token.start, token.end

    def _was(self) -> Iterator[Span]:
        """What was so, of tools that do not say that they tell what was, and have been given no time."""
        yield from (match.span() for match in _USED_TO.finditer(self.clause.text) if self._is_past(match.start()))
        timed = any(v.period is not None and overlaps(v.start, v.end, self.used) for v in self.clause.values)
        past = any(word in _PAST or (len(word) > 4 and word.endswith("ed")) for word in self.wording)
        now = bool(_NOW & self.wording or _FUTURE & self.told or {"is", "are"} & self.wording)
        computed = self.clause.arithmetic is not None
        if timed or computed or (past and not now):
            return
        if self._filtered():
            return
        for token in self.tokens:
            done = any(
                each.low.endswith(("ed", "en")) and (self._is_used(each) or each.stem in self.own)
                for each in self.tokens
                if each.start > token.end
            )
            had = token.low in ("was", "were", "had") or (token.low == "did" and self._had(token))
            if had and not done and not {"was", "were"} & self.wording:
                yield token.start, token.end

    def _had(self, did: Token) -> bool:
        """Whether a clause asks what somebody had: "How many did we have?"."""
        # What an order cost, it still comes to; what a piece cost, its price of now does not tell.
        priced = any(_PRICES & {*tool.name_stems} or any(counts(p) for p in tool.params) for tool in self.tools)
        # Nor does a cost that is worked out of what something is now.
        priced = priced or len(self.tools) > 1
        had = ("have", "own", "cost") if priced else ("have", "own")
        verb = [token for token in self.tokens if token.start > did.end and token.low in had]
        return bool(verb) and not self._is_used(verb[0]) and "did" not in self.wording

    def _is_past(self, start: int) -> bool:
        return not any(each.low in _IS and each.end <= start <= each.end + 1 for each in self.tokens)

    def _broken_down(self) -> Iterator[Span]:
        """What a list or a figure is wanted by, of tools that cannot break anything down: "tickets by assignee"."""
        for token in self.tokens:
            after = self._after(token)
            if token.low != "by" or self._is_used(token) or after is None or self._is_used(after):
                continue
            if after.stem not in self.own or self._is_value(after) or self._is_used(self._after(after)):
                continue
            verb = self._before(token)
            if verb is not None and not verb.low.endswith(("ed", "en")):
                yield token.start, after.end
