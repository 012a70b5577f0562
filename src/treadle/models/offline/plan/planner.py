"""The plan: from a question and the results so far, the calls to make next, or what is ready to be written up.

Worked out afresh for every request from its messages alone. A clause's tool is resolved backwards: what it needs is
filled from the clause, else from another tool's result, which is called first; a failed call is corrected by its hint.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.bundles import Bundle, find_bundle
from treadle.models.offline.grammar.change import Change, find_change
from treadle.models.offline.grammar.comparison import find_comparison
from treadle.models.offline.grammar.question import Clause, Value, split_clauses
from treadle.models.offline.plan.account import Left, account
from treadle.models.offline.plan.amounts import in_the_way
from treadle.models.offline.plan.arguments import fill
from treadle.models.offline.plan.calendar import takes_times
from treadle.models.offline.plan.choice import Chooser
from treadle.models.offline.plan.corrections import as_written, corrected_by, failed_change
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.founded import unfounded, values_in
from treadle.models.offline.plan.goals import Goals
from treadle.models.offline.plan.listers import Listers, another_thing, tells_names
from treadle.models.offline.plan.literal import literal_call
from treadle.models.offline.plan.lookups import besides, is_said, quoted_in, without
from treadle.models.offline.plan.nothing import found_for_want_of, is_empty
from treadle.models.offline.plan.numbers import in_other_units
from treadle.models.offline.plan.outcome import Call, Outcome, Plan, Trouble
from treadle.models.offline.plan.pricing import number_of_things, of_one, price_of_all, times
from treadle.models.offline.plan.refusals import sets_what_is, shared_number
from treadle.models.offline.plan.related import told_by_another
from treadle.models.offline.plan.results import headline, measured_in, value_for
from treadle.models.offline.plan.shortfall import falls_short
from treadle.models.offline.plan.structures import overlaps, plain_number
from treadle.models.offline.plan.together import may_not_be_each, said_together, total_of, without_each
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox
from treadle.models.offline.plan.transcript import Exchange, Turn, hint_of
from treadle.models.offline.plan.twice import noun_of, taken_twice, told_twice
from treadle.models.offline.plan.vocabulary import Vocabulary

_DEPTH, _CORRECTIONS = 3, 6


class Planner:
    """Plans for one turn of a conversation."""

    def __init__(self, box: Toolbox, turns: Sequence[Turn], today: date | None) -> None:
        self.box = box
        self.today = today
        self.exchanges = turns[-1].exchanges if turns else []
        self._asked = (turns[-1].question, *turns[-1].interjections) if turns else ()
        everything = [exchange for turn in turns for exchange in turn.exchanges]
        self.told = everything
        self.listed = {exchange.tool for exchange in everything if not exchange.failed}
        self.vocabulary = Vocabulary(box, everything)
        self.chooser = Chooser(box, self.vocabulary)
        self.listers = Listers(self.chooser, self._was_read)
        self.goals = Goals(self.chooser, today, self._was_read)

    def is_plannable(self, text: str) -> bool:
        """Whether some tool is about `text`."""
        return any(self.chooser.choose(self.box.read(part, self.today)) for part in split_clauses(text))

    def spare_words(self, text: str) -> int | None:
        """How many words of `text` nothing accounts for; None if a part of it has no tool, or one lacks something, or a
        word forbids an answer."""
        plan = self.plan(text)
        able = [each for each in plan.outcomes if each.doubted or not each.troubles]
        done = [each for each in able if not (each.left and each.left.forbids)]
        if not done or plan.unplanned or len(done) < len(plan.outcomes):
            return None
        return sum(len(each.left.spare) for each in done if each.left is not None)

    def plan(self, question: str, forced: bool = False) -> Plan:
        """Plans every clause of `question`.

        Args:
            question: what was asked.
            forced: whether a tool must be called even if none is about the question.
        """
        # What a follow-up was rewritten into, nobody has written so.
        if question in self._asked and (literal := literal_call(question, self.box.tools)) is not None:
            whole = Outcome(self.box.read(question, self.today), tools=[literal[0]], left=Left())
            self._call(*literal, whole)
            return Plan([whole], [])
        bundle = find_bundle(question) if not forced else None
        if bundle is not None and (plan := self._bundled(question, bundle)) is not None:
            return plan
        outcomes: list[Outcome] = []
        unplanned: list[str] = []
        for goal in self.goals.read(question, forced):
            if goal.tool is None:
                unplanned.append(goal.clause.text)
            elif goal.reads:
                outcomes.append(Outcome(goal.clause, calls=[Call(goal.tool.name, {})], left=Left()))
            else:
                outcomes.append(self._accounted(self.resolve(goal.tool, goal.clause, _DEPTH, goal.source)))
        if unplanned or any(each.troubles or (each.left and each.left.forbids) for each in outcomes):
            self._hold_back(outcomes)
        return Plan(outcomes, unplanned)

    def _hold_back(self, outcomes: Sequence[Outcome]) -> None:
        """Makes no change for a question of which a part is not understood: that may take it back, or say when."""
        for outcome in outcomes:
            changing = [call for call in outcome.calls if self.changes(call.tool)]
            if changing:
                outcome.calls.clear()
                outcome.troubles.append(Trouble(f"I did not call {changing[0].tool}, as I do not understand the rest."))

    def changes(self, name: str) -> bool:
        """Whether the tool called `name` changes something."""
        tool = self.box.named(name)
        return tool is not None and tool.may_change

    def resolve(self, tool: KnownTool, clause: Clause, depth: int, source: KnownTool | None = None) -> Outcome:
        """How far `tool` has come with `clause`: its result, or the calls needed next, or what is in the way."""
        filling = fill(tool, clause, self.vocabulary, self.box)
        outcome = Outcome(clause, renamed=dict(filling.renamed), used=list(filling.used), tools=[tool])
        if (lister := self.listers.worth_reading(tool, clause, filling, source)) is not None:
            outcome.calls.append(Call(lister.name, {}))
            outcome.left = Left()
            return outcome
        if filling.unclear is not None:
            one, other, this, that = filling.unclear
            told = f"It is not clear which of '{one.text}' and '{other.text}' is the {noun_of(this)} and which the"
            outcome.troubles.append(Trouble(f"{told} {noun_of(that)}."))
            return outcome
        if doubt := in_the_way(tool, clause, filling) or another_thing(tool, filling, clause, self.told):
            outcome.troubles.append(Trouble(doubt))
            return outcome
        if (change := find_change(clause)) is not None and takes_times(tool):
            return self._changed(tool, change, outcome, depth, source)
        several = filling.spread or self._several(tool, clause, filling, source)
        if several:
            return self._for_each(tool, filling, several, outcome, depth, source)
        arguments = dict(filling.arguments)
        results: list[tuple[Param, Exchange]] = []
        for param in filling.missing[:1] if filling.unknown else filling.missing:
            found = self._obtain(tool, param, clause, filling, arguments, depth, source)
            results += [(param, found.done[0])] if param.name in arguments and found.done else []
            outcome.take(found)
            outcome.used += found.used
            outcome.tools += found.tools
        if (twice := taken_twice(self.box, tool, arguments, outcome.done)) is not None:
            outcome.troubles.append(Trouble(f"'{twice}' may not be meant for two things at once."))
        if (doubled := told_twice(results, arguments)) is not None:
            outcome.troubles.append(Trouble(doubled))
        outcome.done.clear()
        if not outcome.calls and not outcome.troubles:
            self._call(tool, arguments, outcome)
            self._call_for_many(tool, outcome)
        return outcome

    def _for_each(
        self,
        tool: KnownTool,
        filling: Filling,
        several: Sequence[Value],
        outcome: Outcome,
        depth: int,
        source: KnownTool | None,
    ) -> Outcome:
        """The same for each of `several`, and what they come to together where that is asked for."""
        clause = outcome.clause
        first, last = several[0], several[-1]
        if tool.may_change and (doubt := may_not_be_each(clause.text, several)):
            return Outcome(clause, tools=[tool], troubles=[Trouble(doubt)])
        if tool.may_change and (amount := shared_number(tool, filling, clause)):
            outcome.troubles.append(Trouble(f"{amount} may be meant for each of them or for all together."))
            return outcome
        outcome.used.append((first.start, last.end))
        together = said_together(clause.text, tool)
        if together is not None and clause.is_yes_or_no:
            outcome.left = Left((together.group().strip(),))
            return outcome
        for value in several:
            text = clause.text[: first.start] + clause.text[value.start : value.end] + clause.text[last.end :]
            text = text.replace(together.group(), "", 1) if together is not None else without_each(text)
            part = replace(self.box.read(text, self.today), reason=clause.reason)
            if tool.may_change and fill(tool, part, self.vocabulary, self.box).spread:
                return Outcome(clause, tools=[tool], troubles=[Trouble("It is not clear which goes with which.")])
            outcome.take(self._accounted(self.resolve(tool, part, depth, source)))
        if together is not None and len(outcome.done) == len(several):
            outcome.comes_to = total_of(outcome.done, tool)
            if outcome.comes_to is None:
                outcome.done.clear()
                outcome.left = Left((together.group().strip(),))
        return outcome

    def _call_for_many(self, tool: KnownTool, outcome: Outcome) -> None:
        """What several cost, once the price of one is told."""
        number = number_of_things(outcome.clause, tool, outcome.used)
        figure = headline(outcome.done[-1].result) if outcome.done else None
        if number is None or (outcome.done and figure is None):
            return
        made = times(self.box.tools, plain_number(number.text), plain_number(str(figure or 0)))
        if made is None:
            return
        outcome.used.append((number.start, number.end))
        outcome.tools.append(made[0])
        if figure is not None:
            self._call(*made, outcome)

    def _bundled(self, question: str, bundle: Bundle) -> Plan | None:
        """What several things come to, or an order of several; None if one of them cannot be planned by itself."""
        goals = [self.goals.read(part) for part in bundle.parts]
        tools = [each[0].tool for each in goals if len(each) == 1 and not each[0].reads]
        known = [tool for tool in tools if tool is not None]
        if len(known) < len(goals) or len({tool.change is None for tool in known}) > 1:
            return None
        if (known[0].change is None) != bundle.reads:
            return None
        outcomes = [
            self._accounted(self.resolve(tool, each[0].clause, _DEPTH, each[0].source))
            for tool, each in zip(known, goals, strict=True)
        ]
        if any(each.left is None or each.left.forbids for each in outcomes if not each.troubles):
            return None
        if not bundle.summed:
            given = {tuple(sorted(call.arguments)) for each in outcomes for call in each.calls}
            failed = any(each.troubles and not each.done for each in outcomes)
            if failed or len({tool.name for tool in known}) > 1 or len(given) > 1:
                self._hold_back(outcomes)
            return Plan(outcomes, [])
        whole = Outcome(self.box.read(question, self.today), tools=known)
        for each in outcomes:
            whole.take(each)
        finished = all(each.done for each in outcomes) and not whole.calls and not whole.troubles
        whole.comes_to = price_of_all([each.done[-1] for each in outcomes]) if finished else None
        if not all(of_one(tool) for tool in known) or (finished and whole.comes_to is None):
            return None
        return Plan([whole], [])

    def _changed(
        self, tool: KnownTool, change: Change, outcome: Outcome, depth: int, source: KnownTool | None
    ) -> Outcome:
        """The figures of both times and, where a tool calculates, what lies between them."""
        outcome.left = Left()
        for text in (change.earlier, change.later):
            outcome.take(self._accounted(self.resolve(tool, self.box.read(text, self.today), depth, source)))
        figures = [headline(exchange.result) for exchange in outcome.done]
        if len(figures) != 2 or outcome.calls:
            return outcome
        sums = next((t for t in self.box.tools if t.change is None and any(p.is_expression for p in t.params)), None)
        if sums is None or None in figures:
            outcome.left = replace(outcome.left, apart=(*outcome.left.apart, change.word))
            return outcome
        parameter = next(param.name for param in sums.params if param.is_expression)
        self._call(sums, {parameter: f"{figures[1]} - {figures[0]}".replace("- -", "+ ")}, outcome)
        return outcome

    def _accounted(self, outcome: Outcome) -> Outcome:
        """The outcome, with what of its clause is left over; nothing is called for a question that it is not."""
        if outcome.left is not None or outcome.troubles:
            return outcome
        measured = find_comparison(outcome.clause, outcome.used)
        end = measured.number.end if measured is not None else 0
        if outcome.done and not any(measured_in(each.result, outcome.clause, end) for each in outcome.done):
            measured = None
        spans = [*outcome.used, *(measured.spans if measured is not None else ())]
        outcome.left = account(outcome.clause, outcome.tools, spans)
        strange = next((word for each in outcome.done if (word := falls_short(outcome, each, spans))), None)
        if strange is not None:
            outcome.left = replace(outcome.left, turning=(*outcome.left.turning, strange))
        missing = [word for call in outcome.calls for word in self._unfounded(outcome, call)]
        outcome.left = replace(outcome.left, turning=(*outcome.left.turning, *missing))
        if missing or (outcome.left.forbids and not tells_names(outcome, self.box)):
            outcome.calls.clear()
            outcome.done.clear()
        elif outcome.done and not outcome.calls:
            self._doubt_nothing(outcome)
        return outcome

    def _doubt_nothing(self, outcome: Outcome) -> None:
        """Takes back that nothing was found, where what was looked for may be something else."""
        for made in outcome.done:
            tool = self.box.named(made.tool)
            found = tool and found_for_want_of(tool, outcome.clause, made.result, self.box, self.vocabulary)
            if found:
                outcome.troubles.append(found)
                outcome.done.clear()
                outcome.doubted = True
                return

    def _unfounded(self, outcome: Outcome, call: Call) -> list[str]:
        """The words by which a call is not the one that is asked for."""
        tool = self.box.named(call.tool)
        if tool is None:
            return []
        results = {str(value) for each in self.exchanges for value in values_in(each.result)}
        told = results.union(outcome.renamed.values(), *(self.vocabulary.names(param.nouns) for param in tool.params))
        strange = told_by_another(outcome.clause, tool, call.arguments, self.box.tools, told)
        if strange or not tool.may_change:
            return strange
        return unfounded(outcome.clause, tool, call.arguments, told, outcome.used)

    def _several(
        self, tool: KnownTool, clause: Clause, filling: Filling, source: KnownTool | None
    ) -> tuple[Value, ...]:
        """Values joined by "and" of which a tool that is called first takes one at a time."""
        for param in filling.missing:
            for provider in [source] if source else self.chooser.providers(tool, param, clause)[:1]:
                spread = fill(provider, clause, self.vocabulary, self.box).spread
                if spread:
                    return spread
        return ()

    def _obtain(
        self,
        tool: KnownTool,
        param: Param,
        clause: Clause,
        filling: Filling,
        arguments: Json,
        depth: int,
        source: KnownTool | None,
    ) -> Outcome:
        """Gets a value for a parameter that the clause does not give from another tool's result."""
        if filling.unknown:
            written, names = next(iter(filling.unknown.items()))
            return Outcome(clause, troubles=[Trouble(f"There is no {noun_of(param)} '{written}'.", names)])
        best: Outcome | None = None
        if (other := in_other_units(param, clause, filling.used)) is not None:
            return Outcome(
                clause, troubles=[Trouble(f"{tool.name} takes its `{param.name}` in no such unit as '{other}'.")]
            )
        providers = [source] if source else self.chooser.providers(tool, param, clause)
        for provider in providers if depth else []:
            quoted = quoted_in(clause, filling) if tool.may_change else []
            found = self.resolve(provider, without(clause, quoted), depth - 1)
            if any(overlaps(*span, quoted) for span in found.used):
                # A subject is nobody's name to look an address up by.
                continue
            if found.done:
                # What a change is made to has to be said: the only one of some list need not be the one that is meant.
                said = not tool.may_change or is_said(provider, tool, param, found, filling.used)
                said = said and not sets_what_is(tool, param, clause, found.done[0].arguments, arguments)
                # Of "Assign a ticket to Kim" it is not hers that is meant.
                rest = besides(clause, filling.used) if tool.may_change else clause
                value = None if not said else value_for(param, found.done[0], rest, source is not None)
                if value is not None:
                    arguments[param.name] = value
                    word = next((given for given in found.done[0].arguments.values() if isinstance(given, str)), None)
                    if word is not None and param.stems[-1:] == ("id",):
                        found.called[f"{param.name}={value}"] = word
                    found.calls.clear()
                    return found
                found = Outcome(
                    clause,
                    troubles=[Trouble(f"What {provider.name} tells does not say which {noun_of(param)} is meant.")],
                )
            if found.calls:
                return found
            best = best or found
        if best is not None and best.troubles:
            return best
        known = tuple(str(value) for value in param.enum) or self.vocabulary.names(param.nouns)
        about = f" ({param.description.rstrip('.')})" if param.description else ""
        message = f"{tool.name} needs `{param.name}`{about}, which I do not find in the question."
        return Outcome(clause, troubles=[Trouble(message, known)])

    def _call(self, tool: KnownTool, arguments: Json, outcome: Outcome) -> None:
        """The call itself: its result if it was made, itself if not, and after an error its correction."""
        for again in range(_CORRECTIONS):
            made = self._made(tool.name, arguments)
            if made is None:
                failed = failed_change(self.exchanges, self.box, tool, bool(again)) if tool.may_change else None
                outcome.calls += [Call(tool.name, arguments)] if failed is None else []
                outcome.troubles += [failed] if failed is not None else []
                return
            if not made.failed:
                plural = as_written(arguments, outcome) if is_empty(made.result) else None
                if plural is None or tool.may_change:
                    outcome.done.append(made)
                    return
                # Nothing under the singular, which nobody wrote.
                arguments = plural
                continue
            corrected = corrected_by(made, tool, arguments, outcome)
            tried = self._made(tool.name, corrected) if corrected is not None and hint_of(made) is None else None
            if tried is not None and tried.failed:
                corrected = None
            if corrected is None or corrected == arguments:
                hint = hint_of(made)
                lister = self.listers.after_a_refusal(tool) if hint is None else None
                if lister is not None:
                    outcome.calls.append(Call(lister.name, {}))
                else:
                    outcome.troubles.append(Trouble(made.message, hint.available if hint else ()))
                return
            arguments = corrected
        outcome.troubles.append(Trouble(f"{tool.name} did not accept any of the names tried."))

    def _was_read(self, lister: KnownTool) -> bool:
        return lister.name in self.listed or self._made(lister.name, {}) is not None

    def _made(self, tool: str, arguments: Json) -> Exchange | None:
        return next((e for e in reversed(self.exchanges) if e.tool == tool and e.planned == arguments), None)
