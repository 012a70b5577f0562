"""Hooks before and after model calls and tool calls, several of a kind, and the search among many tools."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from treadle import (
    Agent,
    AskUser,
    Limits,
    MemoryJournal,
    Misuse,
    Retry,
    StepContext,
    StepSettings,
    ToolSearch,
    handoff,
    replay,
    tool,
)
from treadle.kernel.events import ModelReplied, NudgeGiven, ToolFinished, ToolReacted
from treadle.kernel.fold import fold_all
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(n: int) -> str:
    """Looks at a number of things."""
    return f"seen {n}"


@tool(effect="write")
def put(n: int) -> str:
    """Puts a number of things somewhere."""
    return f"put {n}"


@tool(effect="read")
def ask(n: int) -> str:
    """Asks somebody for a number."""
    return f"asked {n}"


def test_steps_are_prepared_by_several_and_a_tool_that_one_withholds_stays_withheld() -> None:
    seen: list[StepSettings] = []

    def first(context: StepContext[Any]) -> StepSettings:
        return StepSettings(tools=["look", "ask"], instructions="Be brief.", messages=context.messages[-1:])

    async def second(context: StepContext[Any]) -> StepSettings:
        seen.append(context.chosen)
        assert len(context.messages) == 1
        assert context.tools == ("look", "put", "ask")
        return StepSettings(tools=["put", "look"], instructions="Be kind.")

    model = ScriptedModel(["Yes."])
    agent = Agent(model, tools=[look, put, ask], prepare_step=[first, lambda context: None, second])
    assert agent.run_sync("Well?").text == "Yes."
    (request,) = model.requests
    assert [spec.name for spec in request.tools] == ["look"]
    assert request.messages[0].text == "Be kind."
    assert (seen[0].tools, seen[0].instructions) == (["look", "ask"], "Be brief.")


def test_results_pass_through_several_and_the_first_that_acts_has_the_last_word() -> None:
    seen: list[tuple[str, str, int]] = []

    def loud(call: Any, output: Any) -> str:
        seen.append(("loud", call.result.text, call.made))
        return str(output.content).upper()

    async def careful(call: Any, output: Any) -> Any:
        seen.append(("careful", call.result.text, call.made))
        assert output.content == call.result.content
        return Retry(arguments={"n": 2}) if call.made == 1 else None

    def last(call: Any, output: Any) -> str:
        seen.append(("last", call.result.text, call.made))
        return f"{output.content}!"

    agent = Agent(ScriptedModel([[("look", {"n": 1})], "Done."]), tools=[look], on_tool_result=[loud, careful, last])
    result = agent.run_sync("Look.")
    assert result.tool_calls_made[0].result.text == "SEEN 2!"
    assert seen == [
        ("loud", "seen 1", 1), ("careful", "SEEN 1", 1),
        ("loud", "seen 2", 2), ("careful", "SEEN 2", 2), ("last", "SEEN 2", 2),
    ]  # fmt: skip
    reactions = [event.action for event in result.events if isinstance(event, ToolReacted)]
    assert reactions == ["call", "replace"]


def test_a_result_stands_in_the_journal_before_any_hook_sees_it_and_all_see_it_again_after_a_crash() -> None:
    async def run() -> None:
        journal = MemoryJournal()

        async def check(call: Any, output: Any) -> Any:
            (run_id,) = [info.run_id for info in await journal.list()]
            assert any(isinstance(event, ToolFinished) for event in await journal.read(run_id))
            return "first"

        def breaks(call: Any, output: Any) -> Any:
            assert output.content == "first"
            if broken:
                raise RuntimeError("not now")

        def agent() -> Agent[Any, Any]:
            return Agent(
                ScriptedModel([[("put", {"n": 1})], "Done."]), tools=[put], journal=journal,
                on_tool_result=[check, breaks],
            )  # fmt: skip

        broken = True
        with pytest.raises(RuntimeError):
            await agent().run("Put.")
        broken = False
        (info,) = await journal.list()
        again = Agent(ScriptedModel(["Done."]), tools=[put], journal=journal, on_tool_result=[check, breaks])
        result = await again.resume(info.run_id)
        assert (result.tool_calls_made[0].result.text, result.text) == ("first", "Done.")

    asyncio.run(run())


def test_an_answer_that_is_objected_to_is_given_again() -> None:
    seen: list[tuple[str, int]] = []

    def polite(answer: str, context: StepContext[Any]) -> str | None:
        seen.append((answer, context.step_number))
        return None if "please" in answer else "Say please."

    async def short(answer: str, context: StepContext[Any]) -> str | None:
        return "Say it in three words." if len(answer.split()) > 3 else None

    model = ScriptedModel(["Go.", "Go on, if you please, now.", "Go, please."])
    result = Agent(model, on_answer=[polite, short]).run_sync("Well?")
    assert (result.text, result.stop.reason, len(result.steps)) == ("Go, please.", "answered", 3)
    assert [request.messages[-1].text for request in model.requests[1:]] == ["Say please.", "Say it in three words."]
    assert seen == [("Go.", 0), ("Go on, if you please, now.", 1), ("Go, please.", 2)]


def test_objections_are_bounded() -> None:
    agent = Agent(ScriptedModel(lambda request: "No."), on_answer=lambda answer, context: "Say yes.")
    result = agent.run_sync("Well?")
    assert (result.stop.reason, result.finished, len(result.steps)) == ("consecutive_errors", False, 4)


class Sum(BaseModel):
    total: int


def test_an_answer_of_a_type_is_checked_as_its_value() -> None:
    def even(answer: Sum, context: StepContext[Any]) -> str | None:
        return f"{answer.total} is odd." if answer.total % 2 else None

    script = ['{"total": "x"}', '{"total": 3}', '{"total": 4}']
    result = Agent(ScriptedModel(script), output=Sum, on_answer=even, limits=Limits(consecutive_errors=5)).run_sync("?")
    assert result.output == Sum(total=4)


@pytest.mark.parametrize("below_objects", [False, True])
def test_an_answer_of_whom_it_was_handed_on_to_is_checked_too(below_objects: bool) -> None:
    def polite(answer: str, context: StepContext[Any]) -> str | None:
        return None if "please" in answer else "Say please."

    def loud(answer: str, context: StepContext[Any]) -> str | None:
        return None if "!" in answer else "Shout."

    expert = Agent(
        ScriptedModel(["Go.", "Go!", "Go, please!"]), name="expert", on_answer=loud if below_objects else None
    )
    front = Agent(ScriptedModel([[("transfer_to_expert", {})]]), tools=[handoff(expert)], on_answer=polite)
    assert front.run_sync("Well?").text == "Go, please!"
    helper = Agent(ScriptedModel(["Go."]), name="helper")
    above = Agent(ScriptedModel([[("helper", {"task": "go"})], "please"]), tools=[helper.as_tool()], on_answer=polite)
    assert above.run_sync("Well?").text == "please"


def test_an_answer_stands_in_the_journal_before_it_is_objected_to_and_each_objection_once() -> None:
    async def run() -> None:
        journal = MemoryJournal()

        async def check(answer: str, context: StepContext[Any]) -> str | None:
            kept = await journal.read(context.state.run_id)
            assert sum(isinstance(event, ModelReplied) for event in kept) >= len(context.steps)
            return None if "please" in answer else "Say please."

        whole = await Agent(ScriptedModel(["Go.", "Go, please."]), journal=journal, on_answer=check).run("Well?")
        events = whole.events
        for at in range(1, len(events)):
            state = fold_all(events[:at])
            said = ["Go.", "Go, please."][sum(isinstance(event, ModelReplied) for event in events[:at]) :]
            cut = MemoryJournal()
            await cut.append(state.run_id, 0, events[:at])
            journal = cut
            again = Agent(ScriptedModel(said), journal=cut, on_answer=check)
            result = await again.resume(state.run_id)
            assert result.text == "Go, please."
            assert sum(isinstance(event, NudgeGiven) for event in await cut.read(state.run_id)) == 1
        replayed = await Agent(ScriptedModel([]), journal=cut, on_answer=check).replay(state.run_id)
        assert not replayed.differences
        assert not (await replay(cut, state.run_id)).differences
        part = MemoryJournal()
        await part.append(state.run_id, 0, events[:3])
        with pytest.raises(Misuse, match="lacks: on_answer"):
            await Agent(ScriptedModel(["Go."]), journal=part).resume(state.run_id)

    asyncio.run(run())


def test_one_hook_less_is_stricter_rules_missing() -> None:
    async def run() -> None:
        journal = MemoryJournal()

        def one(call: Any, output: Any) -> Any:
            return AskUser("Sure?")

        def two(call: Any, output: Any) -> None:
            return None

        agent = Agent(
            ScriptedModel([[("look", {"n": 1})], "Done."]), tools=[look], journal=journal, on_tool_result=[two, one]
        )
        waits = await agent.run("Look.")
        fewer = Agent(ScriptedModel(["Done."]), tools=[look], journal=journal, on_tool_result=[two])
        with pytest.raises(Misuse, match="this agent lacks: on_tool_result"):
            await fewer.resume(waits.run_id, results={waits.pending[0].key: "yes"})

    asyncio.run(run())


def test_a_step_by_hand_and_a_stream_are_objected_to_alike() -> None:
    async def run() -> None:
        def polite(answer: str, context: StepContext[Any]) -> str | None:
            return None if "please" in answer else "Say please."

        agent = Agent(ScriptedModel(["Go.", "Go, please."]), on_answer=polite)
        first = await agent.step("Well?")
        assert first.stop.reason == "max_steps"
        assert (await agent.step(first.messages)).text == "Go, please."
        agent = Agent(ScriptedModel(["Go.", "Go, please."]), on_answer=polite)
        async with agent.stream("Well?") as live:
            events = [event async for event in live]
        assert live.result.text == "Go, please."
        assert any(isinstance(event, NudgeGiven) for event in events)
        agent = Agent(ScriptedModel(["Go.", "Go, please."]), on_answer=polite)
        async with agent.stream("Well?") as live:
            assert [text async for text in live.text_stream()] == ["Go.", "\n\n", "Go, please."]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("on_answer", "text"), ("prepare_step", [look, "text"]), ("on_tool_result", 3), ("on_answer", [None])],
)
def test_what_is_no_function_is_refused(name: str, wrong: Any) -> None:
    options: dict[str, Any] = {name: wrong}
    with pytest.raises(Misuse, match=f"{name} takes .*, or a list of them"):
        Agent(ScriptedModel(["Yes."]), **options)


@pytest.mark.parametrize("value", [True, "", 3])
def test_what_is_no_objection_is_refused(value: Any) -> None:
    with pytest.raises(Misuse, match="on_answer returns a text"):
        Agent(ScriptedModel(["Yes."]), on_answer=lambda answer, context: value).run_sync("Well?")


def number(n: int) -> int:
    return n


def many() -> list[Any]:
    def made(topic: str, verb: str) -> Any:
        return tool(
            number,
            name=f"{verb}_{topic}",
            description=f"{verb.title()}s the {topic} of a customer.",
            effect="read",
        )

    return [
        made(topic, verb)
        for topic in ("invoices", "orders", "addresses", "refunds")
        for verb in ("list", "delete", "export")
    ]


def test_of_many_tools_those_that_fit_are_offered_and_others_are_found() -> None:
    search = ToolSearch(many(), most=3)
    model = ScriptedModel([
        [("find_tools", {"words": "delete the address"})], [("delete_addresses", {"n": 1})], "Gone.",
    ])  # fmt: skip
    agent = Agent(model, tools=[*search.tools, look], prepare_step=search)
    result = agent.run_sync("Show me the invoices of Ada.")
    offered = [{spec.name for spec in request.tools} for request in model.requests]
    invoices = {"list_invoices", "delete_invoices", "export_invoices"}
    assert offered[0] == {"find_tools", "look", *invoices}
    assert offered[1] >= offered[0] | {"delete_addresses"}
    assert offered[2] == offered[1]
    assert "delete_addresses" in result.tool_calls_made[0].result.text
    assert result.text == "Gone."
    assert [spec.name for spec in model.requests[1].tools] == [n for n in agent.tools if n in offered[1]]


def test_a_tool_that_was_not_offered_is_not_called_and_none_fits_is_said() -> None:
    search = ToolSearch(many(), most=2)
    script = [[("delete_orders", {"n": 1})], [("find_tools", {"words": "xylophone"})], "Well."]
    result = Agent(ScriptedModel(script), tools=search.tools, prepare_step=search).run_sync("Tell me a joke.")
    assert result.tool_calls_made[0].result.is_error
    assert "No tool has any of these words" in result.tool_calls_made[1].result.text


def test_a_search_is_repeated_by_a_replay_and_after_a_crash() -> None:
    async def run() -> None:
        search, journal = ToolSearch(many(), most=2), MemoryJournal()
        script = [[("find_tools", {"words": "refunds"})], [("list_refunds", {"n": 1})], "Done."]
        agent = Agent(ScriptedModel(script), tools=search.tools, prepare_step=search, journal=journal)
        result = await agent.run("List orders.")
        assert not (await agent.replay(result.run_id)).differences
        for at in range(2, len(result.events)):
            state = fold_all(result.events[:at])
            cut = MemoryJournal()
            await cut.append(state.run_id, 0, result.events[:at])
            replied = sum(isinstance(event, ModelReplied) for event in result.events[:at])
            model = ScriptedModel(script[replied:])
            other = ToolSearch(many(), most=2)
            await Agent(model, tools=other.tools, prepare_step=other, journal=cut).resume(state.run_id)
            for request in model.requests:
                assert ("list_refunds" in {spec.name for spec in request.tools}) is (request.step > 0)

    asyncio.run(run())


def test_a_search_that_cannot_be_right_is_refused() -> None:
    for wrong in (0, True, "8"):
        with pytest.raises(Misuse, match="most="):
            ToolSearch(many(), most=wrong)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="several tools of the name 'look'"):
        ToolSearch([look, look])


def test_five_hundred_tools_of_hostile_words_are_searched() -> None:
    odd = [
        tool(number, name=f"t{i}", description=f"Ünïcode {'Σ' * (i % 5)} 日本語{i} camelCaseWord{i}", effect="read")
        for i in range(500)
    ]
    search = ToolSearch(odd, most=5)
    assert search.fitting("日本語17")[0] == "t17"
    assert search.fitting("") == search.fitting("\x00 \ud800 ?!") == []
    assert len(search.fitting("camel case word")) == 5


def test_the_tool_that_the_model_is_held_to_is_offered_whatever_was_asked() -> None:
    search = ToolSearch(many(), most=1)
    model = ScriptedModel([[("list_orders", {"n": 1})], [("list_orders", {"n": 2})]])
    agent = Agent(
        model,
        tools=search.tools,
        prepare_step=search,
        tool_choice="list_orders",
        limits=Limits(steps=2),
        on_limit="stop",
    )
    result = agent.run_sync("Show me the invoices.")
    assert [call.is_error for call in result.tool_calls_made] == [False, False]
    assert all("list_orders" in {spec.name for spec in request.tools} for request in model.requests)
