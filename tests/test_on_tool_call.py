"""The arguments that an application gives a call before it is made: judged, shown and run like the model's."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from treadle import (
    Agent,
    Alternative,
    MemoryJournal,
    Misuse,
    Retry,
    RunResult,
    ask_before,
    deny,
    external_tool,
    replay,
    tool,
    trace_lines,
)
from treadle.cli.story import Story
from treadle.kernel.events import ModelReplied, ToolReacted, ToolStarted
from treadle.kernel.messages import AssistantMessage, ToolCall
from treadle.models import ModelReply, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.serve.protocols.moves import CallEdited
from treadle.serve.protocols.narrator import Narrator
from treadle.telemetry.spans import Spans
from treadle.testing import ScriptedModel

PAY = [("pay", {"to": "Ann", "amount": 5})]


class Till:
    """A tool that pays, and what it has paid."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool
        def pay(to: str, amount: int) -> str:
            """Pays somebody an amount."""
            self.paid.append((to, amount))
            return f"paid {amount}"

        self.pay = pay


def ten_times(call: Any) -> dict[str, Any]:
    return {**call.arguments, "amount": call.arguments["amount"] * 10}


def test_what_runs_is_what_the_hooks_made_of_the_call_one_after_the_other_and_one_event_says_so() -> None:
    till, seen = Till(), list[tuple[str, int]]()

    async def one_more(call: Any) -> Mapping[str, Any]:
        seen.append((call.name, call.arguments["amount"]))
        return {**call.arguments, "amount": call.arguments["amount"] + 1}

    agent = Agent(
        ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=[lambda call: None, ten_times, one_more]
    )
    result = agent.run_sync("Pay Ann.")
    assert seen == [("pay", 50)]
    assert till.paid == [("Ann", 51)]
    (call,) = result.tool_calls_made
    assert call.arguments == {"to": "Ann", "amount": 51}
    assert call.call.arguments == '{"to":"Ann","amount":5}'
    (event,) = [one for one in result.events if isinstance(one, ToolReacted)]
    assert (event.action, event.arguments) == ("change", '{"to":"Ann","amount":51}')
    assert [line for line in trace_lines(event) if "other arguments" in line and "51" in line]
    told: list[tuple[str, str]] = []
    Story(lambda label, text: told.append((label, text))).tell(result.events)
    assert any(label == "act" and "is made with" in text and "51" in text for label, text in told)


def test_a_call_that_is_left_as_it_is_makes_no_event() -> None:
    till = Till()
    agent = Agent(ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=lambda call: dict(call.arguments))
    assert not [one for one in agent.run_sync("Pay Ann.").events if isinstance(one, ToolReacted)]


def test_rules_judge_the_changed_call() -> None:
    till = Till()
    rules = [deny("pay", when=lambda given: given["amount"] > 40, reason="too much")]
    agent = Agent(ScriptedModel([PAY, "No."]), tools=[till.pay], on_tool_call=ten_times, approvals=rules)
    result = agent.run_sync("Pay Ann.")
    assert till.paid == []
    assert "too much" in result.tool_calls_made[0].result.text  # type: ignore[union-attr]


def test_a_person_is_shown_the_changed_call_and_what_they_say_stands() -> None:
    till = Till()
    agent = Agent(
        ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=ten_times, approvals=[ask_before("pay")]
    )
    waiting = agent.run_sync("Pay Ann.")
    (asked,) = waiting.pending
    assert asked.arguments == {"to": "Ann", "amount": 50}
    assert asyncio.run(agent.resume(waiting, approve={asked.key: {"to": "Ann", "amount": 7}})).finished
    assert till.paid == [("Ann", 7)]


def test_rules_of_a_run_above_judge_what_a_hook_below_made_of_a_call() -> None:
    till = Till()
    below = Agent(ScriptedModel([PAY, "No."]), tools=[till.pay], on_tool_call=ten_times, name="clerk")
    rules = [deny("pay", when=lambda given: given["amount"] > 40)]
    script = [[("clerk", {"task": "Pay Ann."})], "No."]
    Agent(ScriptedModel(script), tools=[below.as_tool()], approvals=rules).run_sync("Pay Ann.")
    assert till.paid == []


def test_calls_that_could_not_be_made_and_calls_of_the_applications_are_not_asked_about() -> None:
    till, asked = Till(), list[str]()

    def look(call: Any) -> None:
        asked.append(f"{call.name} {call.arguments}")

    @tool(effect="read")
    def rate(of: str) -> str:
        """Looks up the rate of a currency."""
        return f"rate of {of}"

    def again(call: Any, output: Any) -> Any:
        if call.made == 1 and not output.is_error:
            return Retry(arguments={"of": "EUR"}) if call.name == "rate" else Alternative("rate", {"of": "CHF"})
        return None

    calls = [("rate", {"of": "USD"}), ("pay", {"to": "Ann"}), ("nothing", {}), PAY[0]]
    agent = Agent(ScriptedModel([calls, "Done."]), tools=[till.pay, rate], on_tool_call=look, on_tool_result=again)
    assert agent.run_sync("Go.").finished
    assert asked == ["rate {'of': 'USD'}", "pay {'to': 'Ann', 'amount': 5}"]


async def taken_up(agent: Agent, journal: MemoryJournal) -> RunResult:
    (newest, *_) = await journal.list(1)
    return await agent.resume(newest.run_id)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"to": "Ann", "amount": "much"}, "do not fit pay"),
        ({"to": "Ann"}, "do not fit pay"),
        ({"to": object(), "amount": 1}, "do not fit pay"),
        ("more", "as a dict, or None"),
    ],
)
def test_what_are_no_arguments_is_the_hooks_fault_and_the_run_goes_on_with_one_that_is_mended(
    given: Any, words: str
) -> None:
    till, journal = Till(), MemoryJournal()
    beside = [("pay", {"to": "Bob", "amount": 1}), *PAY]

    def agent(hook: Any) -> Agent:
        return Agent(ScriptedModel([beside, "Done."]), tools=[till.pay], on_tool_call=hook, journal=journal)

    with pytest.raises(Misuse, match=words):
        agent(lambda call: given if call.arguments["to"] == "Ann" else None).run_sync("Pay.")
    assert till.paid == [("Bob", 1)]
    mended = Agent(ScriptedModel(["Done."]), tools=[till.pay], on_tool_call=ten_times, journal=journal)
    assert asyncio.run(taken_up(mended, journal)).finished
    assert till.paid == [("Bob", 1), ("Ann", 50)]


def test_what_a_hook_made_of_a_call_is_not_made_again_after_a_crash() -> None:
    """The process dies once the change is written: the arguments are multiplied once."""
    till, journal = Till(), MemoryJournal()

    async def main() -> None:
        agent = Agent(ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=ten_times)
        whole = (await agent.run("Pay Ann.")).events
        at = next(number for number, one in enumerate(whole) if isinstance(one, ToolStarted))
        assert isinstance(whole[at - 1], ToolReacted)
        await journal.append(whole[0].run_id, 0, whole[:at])
        till.paid.clear()
        again = Agent(ScriptedModel(["Done."]), tools=[till.pay], on_tool_call=ten_times, journal=journal)
        assert (await taken_up(again, journal)).finished

    asyncio.run(main())
    assert till.paid == [("Ann", 50)]


def test_a_run_is_taken_up_only_with_as_many_hooks() -> None:
    till, journal = Till(), MemoryJournal()
    rules = [ask_before("pay")]
    agent = Agent(
        ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=ten_times, approvals=rules, journal=journal
    )
    waiting = agent.run_sync("Pay Ann.")
    careless = Agent(ScriptedModel(["Done."]), tools=[till.pay], approvals=rules, journal=journal)
    with pytest.raises(Misuse, match="on_tool_call"):
        asyncio.run(careless.resume(waiting.run_id, approve=[waiting.pending[0].key]))


def test_the_reply_stands_in_the_journal_before_a_hook_sees_a_call_of_it_and_a_replay_does_not_ask_it() -> None:
    till, journal, asked = Till(), MemoryJournal(), list[bool]()

    async def look(call: Any) -> dict[str, Any]:
        (line,) = await journal.list(1)
        asked.append(any(isinstance(one, ModelReplied) for one in await journal.read(line.run_id)))
        return ten_times(call)

    async def main() -> None:
        agent = Agent(ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=look, journal=journal)
        run_id = (await agent.run("Pay Ann.")).run_id
        assert (await agent.replay(run_id)).same
        assert (await replay(journal, run_id)).same

    asyncio.run(main())
    assert asked == [True]
    assert till.paid == [("Ann", 50)]


def test_a_read_does_not_begin_early_past_a_hook() -> None:
    seen: list[str] = []

    @tool(effect="read")
    def look(at: str) -> str:
        """Looks at something."""
        seen.append(at)
        return "seen"

    async def slow(request: Any) -> Any:
        if len(request.messages) > 1:
            return "Done."
        return pieces()

    async def pieces() -> AsyncIterator[Any]:
        call = ToolCall("c", "look", '{"at": "mine"}')
        yield ToolCallStarted("c", "look")
        yield ToolCallDelta("c", call.arguments)
        yield ToolCallCompleted("c")
        for _ in range(20):
            await asyncio.sleep(0)
        yield ModelReply(AssistantMessage((call,)), finish="tool_calls")

    async def main() -> None:
        agent = Agent(ScriptedModel(slow), tools=[look], on_tool_call=lambda call: {"at": "yours"})
        await agent.run("Look.")

    asyncio.run(main())
    assert seen == ["yours"]


def test_a_call_that_is_answered_from_outside_waits_with_what_the_hook_made_of_it() -> None:
    schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
    ask = external_tool("ask_customer", "Asks the customer a question.", schema, wait=True)
    script = ScriptedModel([[("ask_customer", {"question": "colour"})], "Red."])
    agent = Agent(script, tools=[ask], on_tool_call=lambda call: {"question": "Which colour?"})
    (asked,) = agent.run_sync("Order.").pending
    assert asked.arguments == {"question": "Which colour?"}


def test_a_hook_that_is_no_function_is_refused() -> None:
    with pytest.raises(Misuse, match="on_tool_call takes a function of a call"):
        Agent(ScriptedModel([]), on_tool_call="pay")  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="on_tool_call"):
        Agent(ScriptedModel([]), middleware=[ten_times])  # type: ignore[call-arg]


def test_front_ends_are_told_with_which_arguments_it_runs() -> None:
    till, narrator = Till(), Narrator()
    agent = Agent(ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=ten_times)
    told = [move for event in agent.run_sync("Pay Ann.").events for move in narrator.hear(event)]
    assert [one for one in told if isinstance(one, CallEdited)] == [
        CallEdited("call_0_0", "pay", '{"to":"Ann","amount":50}')
    ]


@pytest.mark.parametrize("by", ["the application", "a person"])
def test_a_trace_has_the_arguments_that_ran(by: str) -> None:
    till = Till()
    hook, rules = (ten_times, []) if by == "the application" else (None, [ask_before("pay")])
    agent = Agent(ScriptedModel([PAY, "Done."]), tools=[till.pay], on_tool_call=hook, approvals=rules)
    result = agent.run_sync("Pay Ann.")
    if by == "a person":
        result = asyncio.run(agent.resume(result, approve={result.pending[0].key: {"to": "Ann", "amount": 50}}))
    spans = Spans(content=True)
    ended = [span for seq, event in enumerate(result.events) for span in spans.take(seq, event)]
    (ran,) = [span for span in ended if span.operation == "execute_tool"]
    assert '"amount":50' in ran.attributes["gen_ai.tool.call.arguments"]
