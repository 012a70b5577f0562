"""The goals: a question split into what it asks for, each with its clause and the tool that is about it.

A clause that asks for nothing by itself belongs to the one beside it: "country DE only. What is the net value?".
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from treadle.models.offline.grammar.english import PLAIN_VERBS, word_set
from treadle.models.offline.grammar.meaning import ASKED_FOR, IDLE_VERBS, is_idle, is_turning
from treadle.models.offline.grammar.question import Clause, split_clauses
from treadle.models.offline.grammar.words import is_function_word, is_verb, stem
from treadle.models.offline.plan.account import account
from treadle.models.offline.plan.affinity import is_free_text
from treadle.models.offline.plan.arguments import fill
from treadle.models.offline.plan.choice import Chooser, ChosenTool
from treadle.models.offline.plan.outcome import Goal
from treadle.models.offline.plan.toolbox import KnownTool, Param

_COURTESIES = word_set(
    "please pls plz thx thank thanks you so very much many a lot ok okay hi hello hey kindly cheers great well then "
    "now will can could would that's that is all for me us"
)

_GREETING = re.compile(r"\W*how (?:are|is|was|do|does)\b", re.IGNORECASE)
_QUOTES = re.compile(r"[\"“”«»`‘]|(?<!\w)'")
_TAKES_BACK = re.compile(
    r"\W*(?:(?:and|but|or|no|oh|sorry|wait|please|then)\W+)*(?:cancel|stop|undo|revert|abort|drop|forget|scratch|ignore|"
    r"skip|delete|take back|call off) (?:that|this)(?: back| again| off)?\W*$",
    re.IGNORECASE,
)


class Goals:
    """Finds the goals of a question."""

    def __init__(self, chooser: Chooser, today: date | None, was_read: Callable[[KnownTool], bool]) -> None:
        self.chooser = chooser
        self.box, self.vocabulary = chooser.box, chooser.vocabulary
        self.today = today
        self.was_read = was_read

    def read(self, question: str, forced: bool = False) -> list[Goal]:
        """What `question` asks for, in order.

        Args:
            question: what was asked.
            forced: whether a tool must be called even if none is about the question.
        """
        goals: list[Goal] = []
        for part in (order for piece in split_clauses(question) for order in self._orders(piece)):
            clause = self.box.read(part, self.today)
            pair = self._two_heads(clause)
            undone = _TAKES_BACK.match(part) is not None and _may_take_back(goals, clause)
            choice = None if pair or undone else self.chooser.choose(clause, forced)
            if pair:
                goals += pair
            elif choice is not None:
                if not self._join_fragment(goals, choice, clause):
                    goals.append(self._completed(choice, clause, goals))
                    self._take_lead(goals)
            elif (
                goals
                and goals[-1].tool is not None
                and not (goals[-1].clause.text.endswith("?") and clause.text.lower().startswith("and "))
                and (merged := self._merged(goals[-1].clause, clause)) is not None
            ):
                goals[-1] = Goal(merged, goals[-1].tool, goals[-1].source)
            elif (lister := self._unread(clause)) is not None:
                goals.append(Goal(clause, lister, reads=True))
            elif (
                any(not is_idle(token.text) for token in clause.tokens)
                or _may_take_back(goals, clause)
                or _asks(clause)
            ):
                goals.append(Goal(clause))
        return goals

    def _orders(self, part: str) -> list[str]:
        """The orders of a part that joins two by what tools are called by: "Discharge Rex and move Bo to cage 8"."""
        changing = [tool for tool in self.box.tools if tool.change is not None]
        things = {word for tool in self.box.tools for param in tool.params for word in param.nouns}
        verbs = [verb for tool in changing for verb in sorted(tool.called) if stem(verb) not in things]
        if self.box.read(part, self.today).opening not in verbs or _QUOTES.search(part):
            return [part]
        joint = re.compile(rf"\s*(?:,|,? and|,? then|,? and then)\s+(?=(?:{'|'.join(map(re.escape, verbs))})\s)")
        pieces = joint.split(part)
        for at, piece in enumerate(pieces, start=1) if len(pieces) > 1 else ():
            clause = self.box.read(piece, self.today)
            choice = self.chooser.choose(clause)
            if choice is None or choice.tool not in changing or choice.filling.missing:
                return [part]
            if clause.reason and at < len(pieces):
                # A reason may go on, as `split_clauses` knows.
                return [part]
            if any(is_free_text(param) for param in choice.tool.params if param.name in choice.filling.arguments):
                # What somebody is to be told may go on.
                return [part]
        return pieces

    def _unread(self, clause: Clause) -> KnownTool | None:
        """A list that is worth reading before a clause is given up: it names what nobody has told of yet."""
        if clause.command is not None and clause.command not in PLAIN_VERBS | IDLE_VERBS:
            return None
        if not any(value.kind in ("code", "quoted", "period") for value in clause.values):
            return None
        for tool in self.box.tools:
            for param in tool.params if tool.change is None else ():
                lister = self.chooser.lister(param, tool) if param.shape == "text" and not param.enum else None
                told = any(each.shape in ("filters", "mapping") for each in tool.params)
                if lister is not None and told and not self.was_read(lister):
                    return lister
        return None

    def _completed(self, choice: ChosenTool, clause: Clause, goals: list[Goal]) -> Goal:
        """The goal for a clause; what it is about comes from the clause before it if it does not say ("how many are
        left?")."""
        lacking = [
            p
            for p in choice.filling.missing
            if p.shape == "text" and not self.chooser.providers(choice.tool, p, clause)
        ]
        direct = bool(lacking)
        lacking = lacking or self._lacking_first(choice, clause)
        earlier = goals[-1] if goals else None
        if lacking and earlier is not None and earlier.tool is not None:
            before = fill(earlier.tool, earlier.clause, self.vocabulary, self.box)
            kin = [p for p in earlier.tool.params if p.nouns == lacking[0].nouns and p.name in before.arguments]
            told = before.arguments[kin[0].name] if kin else None
            named = told[0] if isinstance(told, list) and len(told) == 1 else told
            again = None
            if named is not None and (direct or isinstance(named, str)):
                whole = self.box.read(f"{clause.text.rstrip(' ?.!')} of {named}", self.today)
                again = self.chooser.choose(whole)
            same = again is not None and (again.tool.name == choice.tool.name if direct else not again.filling.missing)
            if again is not None and same and lacking[0] not in again.filling.missing:
                return Goal(whole, again.tool, again.source)
        return Goal(clause, choice.tool, choice.source)

    def _lacking_first(self, choice: ChosenTool, clause: Clause) -> list[Param]:
        """What the tools lack that would be asked first for what `choice` lacks."""
        return [
            param
            for missing in choice.filling.missing
            for provider in self.chooser.providers(choice.tool, missing, clause)[:1]
            for param in fill(provider, clause, self.vocabulary, self.box).missing
            if param.shape in ("text", "names")
        ]

    def _take_lead(self, goals: list[Goal]) -> None:
        """Reads a clause that nothing was planned for as the lead-in of the one after it, if it belongs there."""
        if len(goals) > 1 and goals[-2].tool is None and not goals[-2].clause.text.endswith(("?", "!")):
            merged = self._merged(goals[-1].clause, goals[-2].clause)
            if merged is not None and not is_verb(goals[-2].clause.tokens[0].text):
                goals[-2:] = [Goal(merged, goals[-1].tool, goals[-1].source)]

    def _join_fragment(self, goals: list[Goal], choice: ChosenTool, clause: Clause) -> bool:
        """Joins a clause that asks for nothing to the one beside it, as in "country DE only. What is the net value?":
        that is one question, and without its condition it would be another."""
        if not goals or goals[-1].tool is None:
            return False
        first = goals[-1].clause
        if goals[-1].tool is not choice.tool:
            merged = self._merged(first, clause) if clause.is_fragment and limits(clause) else None
            goals[-1] = Goal(merged, goals[-1].tool, goals[-1].source) if merged is not None else goals[-1]
            return merged is not None
        if not any(self._lacks(each, choice.tool) for each in (first, clause) if each.is_fragment):
            return False
        joined = self._read_on(first, f"{first.text.rstrip(' .!?,')}, {clause.text}")
        goals[-1] = Goal(joined, choice.tool, choice.source)
        return True

    def _lacks(self, clause: Clause, tool: KnownTool) -> bool:
        """Whether a clause by itself does not make a call of the tool."""
        filling = fill(tool, clause, self.vocabulary, self.box)
        return bool(filling.missing) or account(clause, [tool], filling.used).forbids

    def _merged(self, clause: Clause, extra: Clause) -> Clause | None:
        """The clause with `extra` as its supplement, if that leaves its tool the same and gives it more to go on."""
        before = self.chooser.choose(clause)
        opened = extra.tokens[0].text if extra.tokens else ""
        # "Throughout 2023, …" opened a sentence: behind a name, the capital would make it a part of that.
        holding = is_function_word(opened) or is_turning(opened)
        added = f"{extra.text[:1].lower()}{extra.text[1:]}" if holding else extra.text
        merged = self._read_on(clause, f"{clause.text.rstrip(' ?.!')} {added}")
        after = self.chooser.choose(merged)
        if before is None or after is None or before.tool.name != after.tool.name:
            return None
        if before.tool.change is not None and not holding:
            # "Restart billing, then auth" restarts one after the other.
            return None
        grown = after.filling.arguments != before.filling.arguments
        return (
            merged
            if grown and not extra.text.lower().startswith(("what", "who", "when", "where", "why", "how"))
            else None
        )

    def _read_on(self, clause: Clause, text: str) -> Clause:
        """A clause that goes on, with the reason behind it, which stands in no text of it."""
        read = self.box.read(text, self.today)
        return replace(read, reason=read.reason or clause.reason)

    def _two_heads(self, clause: Clause) -> list[Goal]:
        """ "the stock and price of apples": one clause that asks two tools about the same thing."""
        for place in range(1, len(clause.tokens) - 1):
            left, joint, right = clause.tokens[place - 1 : place + 2]
            if joint.low != "and" or any(
                is_function_word(token.text) or token.text[0].isdigit() for token in (left, right)
            ):
                continue
            texts = (
                clause.text[: left.end] + clause.text[right.end :],
                clause.text[: left.start] + clause.text[right.start :],
            )
            clauses = [self.box.read(text, self.today) for text in texts]
            choices = [self.chooser.choose(each) for each in clauses]
            tools = [choice.tool for choice in choices if choice is not None]
            words = (left.stem, right.stem)
            if len(tools) == 2 and tools[0].name != tools[1].name:
                spoken = [tool.fit(word) >= 1.5 for tool, word in zip(tools, words, strict=True)]
                if all(spoken):
                    return [Goal(each, tool) for each, tool in zip(clauses, tools, strict=True)]
        return []


def _may_take_back(goals: list[Goal], clause: Clause) -> bool:
    """Whether words that else change nothing stand beside a change, and are no courtesy: "did you?", "cancel that"."""
    changing = any(goal.tool is not None and goal.tool.may_change for goal in goals)
    return changing and any(token.low not in _COURTESIES for token in clause.tokens)


def _asks(clause: Clause) -> bool:
    """Whether a clause asks for something by its first word alone: "who says so?", and not "how are you?"."""
    first = clause.tokens[0].low if clause.tokens else ""
    return first in ASKED_FOR or (first == "how" and _GREETING.match(clause.text) is None)


def limits(clause: Clause) -> bool:
    """Whether a clause opens with a word that limits what was said before it."""
    opened = clause.tokens[0].text if clause.tokens else ""
    return opened.lower() in ("only", "just") or is_turning(opened)
