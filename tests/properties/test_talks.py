"""Conversations of several runs: what an agent must still be shown, whatever was left out, cleared or handed on.

- what was asked first, and of this run
- the payments that were made for it: by a call that stands there, in a notice, or in what an agent below says of itself
  when it stopped; an agent below that answered tells in its own words what it did
- nothing is paid twice, and what is sent is valid
"""

import asyncio
import random

from checks import valid
from hypothesis import given
from hypothesis import strategies as st
from worlds import examples

from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    ShortenResult,
    Summarise,
    handoff,
    tool,
)
from treadle.models import AssistantMessage, SystemMessage, ToolCall
from treadle.testing import ScriptedModel

LONG = "lorem ipsum " * 300


class Talk:
    """A conversation, who takes part in it, and what was done and asked in it so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.journal, self.conversation = chance, MemoryJournal(), Conversation()
        self.asked: list[str] = []
        self.paid: dict[int, str] = {}
        self.told_by_the_agent_itself: set[int] = set()
        self.number = 0
        self.asks = chance.random() < 0.4
        self.wrong: list[BaseException] = []
        self.contexts = {who: self.policies() for who in "abc"}
        self.limits = {who: Limits(steps=chance.choice([3, 6, 12]), consecutive_errors=None) for who in "abc"}

    def policies(self):
        return self.chance.choice(
            [
                lambda: [],
                lambda: [KeepFirstAndRecent(4000, 2500)],
                lambda: [ClearToolResults(2500, 1500, keep=1)],
                lambda: [ShortenResult(100), ClearToolResults(2500, 1500, keep=1), KeepFirstAndRecent(4000, 2500)],
                lambda: [Summarise(ScriptedModel(lambda request: "They talked."), 4000, 2500, max_tokens=100)],
            ]
        )()

    def agent(self) -> Agent:
        """Agents as a process has them that begins anew."""
        tools = [*self.tools("c")]
        low = Agent(self.model("c"), name="c", tools=tools, **self.bounds("c"))
        tools = [*self.tools("b"), low.as_tool()]
        middle = Agent(self.model("b"), name="b", tools=tools, **self.bounds("b"))
        tools = [*self.tools("a"), handoff(middle), middle.as_tool("ask_b")]
        return Agent(
            self.model("a"),
            name="a",
            tools=tools,
            **self.bounds("a"),
            journal=self.journal,
            watch_progress=False,
        )

    def bounds(self, who: str):
        return {"context": self.contexts[who], "limits": self.limits[who]}

    def tools(self, who: str):
        @tool(effect="read")
        def look(n: int) -> str:
            """Looks."""
            return f"seen {n} {LONG if n % 2 else ''}"

        @tool(effect="write", needs_approval=self.asks)
        def pay(n: int) -> str:
            """Pays."""
            if n in self.paid:
                self.wrong.append(AssertionError(f"{n} is paid twice"))
            self.paid[n] = who
            return "done"

        return look, pay

    def model(self, who: str) -> ScriptedModel:
        def turn(request):
            try:
                self.look_at(who, request.messages)
            except AssertionError as error:
                # Raised here it would be a model's error.
                self.wrong.append(error)
            if request.tool_choice == "none" or not request.tools or self.chance.random() < 0.2:
                # What it paid, and what agents below did, is for it to tell.
                self.told_by_the_agent_itself |= {n for n, payer in self.paid.items() if payer >= who != "a"}
                return "That is all."
            return [self.call(who) for _ in range(self.chance.choice([1, 1, 2, 3]))]

        return ScriptedModel(turn, keep_requests=False, name=who)

    def call(self, who: str):
        self.number += 1
        below = {
            "a": [("transfer_to_b", {"reason": "it knows"}), ("ask_b", {"task": "Pay."})],
            "b": [("c", {"task": "Pay."})],
        }
        plain = [("look", {"n": self.number}), ("look", {"n": self.number}), ("pay", {"n": self.number})]
        return self.chance.choice([*plain, *plain, *below.get(who, [])])

    def look_at(self, who: str, messages) -> None:
        valid(messages)
        text = "\n".join(said(message) for message in messages)
        if who == "a" or "handed on to you" in text:
            assert self.asked[0] in text
            assert self.asked[-1] in text
        if who == "a":
            for n, payer in self.paid.items():
                # Of many the latest are named, and the others counted.
                if n not in self.told_by_the_agent_itself and "more, earlier than these" not in text:
                    assert f'"n":{n}}}' in text or f'n\\":{n}}}' in text, (n, payer)

    async def carry_out(self) -> None:
        agent = self.agent()
        for number in range(self.chance.randrange(1, 5)):
            if number and self.chance.random() < 0.3:
                # As a program of one's own adds a call, under an id that one before it may have.
                self.conversation.add_assistant("", [ToolCall("call_0_0", "look", '{"n": 0}')])
                self.conversation.add_tool_result("call_0_0", "seen 0")
                self.conversation.add_assistant("I looked.")
            self.asked.append(f"question {number}?")
            result = await agent.run(self.asked[-1], conversation=self.conversation)
            for _ in range(10):
                if result.stop.reason != "waiting":
                    break
                if self.chance.random() < 0.4:
                    agent = self.agent()
                call = self.chance.choice(result.pending)
                decided = {self.chance.choice(["approve", "deny"]): [call.key]}
                result = await agent.resume(result.run_id, conversation=self.conversation, **decided)
            assert not self.wrong, self.wrong
            if result.stop.reason == "waiting":
                return
            shown = [message for message in result.messages if not isinstance(message, SystemMessage)]
            assert list(self.conversation.messages) == shown
            assert (await agent.replay(result.run_id)).differences == ()


def said(message) -> str:
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    return "\n".join([message.text, *(f"{call.name}({call.arguments})" for call in calls)])


@examples(60, shrink=False)
@given(st.integers(0, 2**32))
def test_what_was_asked_and_paid_stays_in_view(seed):
    asyncio.run(Talk(random.Random(seed)).carry_out())
