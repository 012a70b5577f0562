"""The offline model: the planner behind the Model port.

It keeps nothing between requests: the messages hold all that it knows, so the same request gets the same reply. It is
not a language model and says so. `plan` decides, `answer` writes.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

from treadle.kernel.messages import AssistantMessage, FinishReason, Text, ToolCall, Usage
from treadle.models.offline.answer.declined import decline, foreign, lost, too_long
from treadle.models.offline.answer.written import structured, write_up
from treadle.models.offline.grammar.joined import find_joined
from treadle.models.offline.grammar.language import is_german
from treadle.models.offline.grammar.sides import of_each
from treadle.models.offline.grammar.spelling import plainly, respelled
from treadle.models.offline.grammar.words import parts
from treadle.models.offline.plan.called import in_words
from treadle.models.offline.plan.choice import is_final
from treadle.models.offline.plan.continued import spelled_out
from treadle.models.offline.plan.followup import Meant, effective_question
from treadle.models.offline.plan.literal import literal_call
from treadle.models.offline.plan.outcome import Call, Plan
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.recorded import plan_of_records
from treadle.models.offline.plan.together import worked_out
from treadle.models.offline.plan.toolbox import Toolbox
from treadle.models.offline.plan.transcript import LONGEST, Turn, count_calls, read_turns
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.profile import ModelProfile

# What one has, where it is not said.
_OWNED = ("balance", "credit", "stock")


class OfflineModel:
    """A deterministic planner that needs no key and no network.

    It reads the question, the tools' schemas and the results so far, calls the tools that fit, and reports what they
    return; what it cannot plan it declines. It costs nothing: usage is zero tokens.
    """

    name = "offline"

    def __init__(self, clock: Callable[[], date] | None = None) -> None:
        """Makes the model.

        Args:
            clock: says which day it is, for "today" and "tomorrow". Without it such words are not understood, and a
                reply depends on its request alone.
        """
        self._clock = clock

    def cost(self, usage: Usage) -> Decimal:
        """Nothing, in dollars."""
        return Decimal(0)

    @property
    def profile(self) -> ModelProfile:
        """It fills in the schema that it is given, calls several tools at once, and does not think."""
        return ModelProfile(
            output="native",
            output_beside_tools="native",
            tools=True,
            parallel_calls=True,
            prefix_cache=False,
            thinking=False,
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`: with tool calls, or with text in pieces of a word; the whole reply comes last."""
        calls, text = self._reply(request)
        first = count_calls(request.messages) + 1
        made = tuple(
            ToolCall(f"call_{number}", call.tool, json.dumps(call.arguments, ensure_ascii=False))
            for number, call in enumerate(calls, first)
        )
        for call in made:
            yield ToolCallStarted(call.id, call.name)
            yield ToolCallDelta(call.id, call.arguments)
            yield ToolCallCompleted(call.id)
        if not made:
            for piece in re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text):
                yield TextDelta(piece)
        finish: FinishReason = "tool_calls" if made else "stop"
        yield ModelReply(AssistantMessage(made or (Text(text),)), usage=Usage(0, 0), finish=finish, model=self.name)

    def _reply(self, request: ModelRequest) -> tuple[list[Call], str]:
        """The calls to make now or, if there are none, the text."""
        box = Toolbox(request.tools)
        may_call = request.tool_choice != "none"
        reads = [tool.name for tool in box.tools if not tool.may_change]
        turns = _called_by_name(read_turns(request.messages, reads, closing=not may_call), box)
        if not turns or (not box.tools and not turns[-1].exchanges):
            return [], decline(box)
        if len(turns[-1].question) > LONGEST:
            return [], too_long(LONGEST)
        only = box.named(request.tool_choice)
        offered = Toolbox([only.spec]) if only is not None else box
        planner = Planner(offered, _settled(turns, Planner(offered, turns, self._today())), self._today())
        turns = _settled(turns, planner)
        meant = spelled_out(effective_question(turns, planner), planner)
        if meant.lost:
            return [], lost(meant.lost)
        plan = planner.plan(meant.text, forced=only is not None)
        nothing = not plan.calls and not any(outcome.done for outcome in plan.outcomes)
        changing = any(planner.changes(call.tool) for call in plan.calls)
        records = None if only is not None or changing else plan_of_records(planner, meant.text, nothing)
        if records is not None:
            plan = records
        elif nothing:
            meant, plan = _read_otherwise(meant, plan, planner)
        for added in turns[-1].interjections:
            if planner.is_plannable(added):
                more = planner.plan(added)
                plan = Plan(plan.outcomes + more.outcomes, plan.unplanned)
        if may_call and plan.calls:
            return plan.calls, ""
        read_as = meant.text if meant.rewritten else ""
        if is_german(turns[-1].question) and not any(outcome.done for outcome in plan.outcomes):
            return [], foreign(box)
        text = write_up(plan, box, unfinished=not may_call, read_as=read_as) if plan.outcomes else decline(box)
        if request.tool_choice == "required":
            handing_in = self._hand_in(box, text)
            if handing_in is not None:
                return [handing_in], ""
        if request.output_schema is not None:
            text = structured(plan, request.output_schema, text) or text
        return [], text

    def _today(self) -> date | None:
        return self._clock() if self._clock is not None else None

    @staticmethod
    def _hand_in(box: Toolbox, text: str) -> Call | None:
        """The call of the tool that takes the answer, where replying with text is not allowed."""
        tool = next((tool for tool in box.tools if is_final(tool)), None)
        if tool is None:
            return None
        return Call(tool.name, {param.name: text for param in tool.required if param.shape == "text"})


def _called_by_name(turns: list[Turn], box: Toolbox) -> list[Turn]:
    """The turns, with the tools that their questions order by name said in words, but for a literal call to be made
    now: what is said after one is read with its words."""
    names = [tool.name for tool in box.tools]
    said = [replace(turn, question=in_words(turn.question, names)) for turn in turns]
    now = turns[-1:] if turns and literal_call(turns[-1].question, box.tools) is not None else said[-1:]
    return [*said[:-1], *now]


def _read_otherwise(meant: Meant, plan: Plan, planner: Planner) -> tuple[Meant, Plan]:
    """A question of which nothing can be planned, in words of which something can, without any change, and its plan.

    They are its own with the slips in small words put right, then also with those in the tools' words, or ask for the
    figure of each of the things that it compares.
    """
    plain = plainly(meant.text)
    if (worked := _worked_out(plain or meant.text, planner)) is not None:
        return worked
    compared = of_each(plain)
    told = [f"{tool.name} {tool.spec.description}" for tool in planner.box.tools]
    told += [f"{param.name} {param.description}" for tool in planner.box.tools for param in tool.params]
    known = frozenset(word for text in told for word in parts(text))
    for better in (plain, respelled(plain, known), *compared):
        if better is None or better == meant.text:
            continue
        again = planner.plan(better)
        figures = len(again.calls) + sum(len(outcome.done) for outcome in again.outcomes)
        lacking = again.unplanned or any(outcome.troubles for outcome in again.outcomes)
        lacking = lacking or (better in compared and (figures < 2 or _takes_for_a_name(again, better)))
        if figures and not lacking and not any(planner.changes(call.tool) for call in again.calls):
            return Meant(better, True), again
    return meant, plan


def _worked_out(question: str, planner: Planner) -> tuple[Meant, Plan] | None:
    """The plan for what two figures come to, or the calls that tell them; None if there is none, or several."""
    readings = find_joined(question, _OWNED)
    found: list[tuple[Meant, Plan]] = []
    for joined in readings:
        plan = planner.plan(joined.question)
        lacking = plan.unplanned or any(each.troubles or (each.left and each.left.forbids) for each in plan.outcomes)
        if lacking or len(plan.outcomes) != 1 or any(planner.changes(call.tool) for call in plan.calls):
            continue
        whole = plan.outcomes[0]
        if plan.calls:
            found.append((Meant(joined.question, True), plan))
        elif (worked := worked_out(whole.done, joined.working, joined.what)) is not None:
            whole.comes_to = worked
            found.append((Meant(joined.question, True), plan))
    return found[0] if len(found) == 1 or (found and len({each.text for each, _ in found}) == 1) else None


def _takes_for_a_name(plan: Plan, question: str) -> bool:
    """Whether a word of what is asked for, "age" of "What is the age of …?", was taken for what something is called."""
    asked = question.lower().split(" of ")[0].split(" in ")[0].split()[3:]
    made = [call.arguments for call in plan.calls]
    made += [each.arguments for outcome in plan.outcomes for each in outcome.done]
    given = [value.lower() for arguments in made for value in arguments.values() if isinstance(value, str)]
    return question.startswith("What") and any(value in asked for value in given)


def _settled(turns: list[Turn], planner: Planner) -> list[Turn]:
    """The turns, the last one split where a user message that came before its answer asks for something of its own.

    A run that was cut short leaves a question without an answer; what the person says next is a question, unless it
    only adds to the one before ("also …") or no tool is about it.
    """
    last = turns[-1]
    for place, said in enumerate(last.interjections):
        adds = re.match(r"^\W*(?:also|and|plus|in addition|additionally)\b", said, re.IGNORECASE)
        if last.exchanges and not adds and planner.is_plannable(said):
            fresh = Turn(said, last.interjections[place + 1 :], list(last.exchanges))
            return [*turns[:-1], Turn(last.question, last.interjections[:place], list(last.exchanges)), fresh]
    return turns
