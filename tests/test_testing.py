"""Models for tests: every kind of turn, replays, and the switch that forbids real models."""

import asyncio
import functools
from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Agent, Limits, MemoryJournal, Misuse, Price, Usage, tool
from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall
from treadle.models import (
    ModelReply,
    ModelRequest,
    Overloaded,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ReplayModel, ScriptedModel, ScriptExhausted, forbid_real_models

REQUEST = ModelRequest(())


def said(model, request=REQUEST):
    async def run():
        return [event async for event in model.stream(request)]

    return asyncio.run(run())


async def pieces():
    yield TextDelta("fo")
    yield TextDelta("ur")
    yield ModelReply(AssistantMessage((Text("four"),)))


async def later(request):
    await asyncio.sleep(0)
    return "four"


CALL = ToolCall("call_0_0", "add", '{"a":1}')


@pytest.mark.parametrize(
    ("turn", "content", "finish"),
    [
        ("four", (Text("four"),), "stop"),
        ("", (), "stop"),
        ([("add", {"a": 1})], (CALL,), "tool_calls"),
        ([("add", "{broken")], (ToolCall("call_0_0", "add", "{broken"),), "tool_calls"),
        (("so: ", [("add", {"a": 1})]), (Text("so: "), CALL), "tool_calls"),
        (ModelReply(AssistantMessage((Thinking("hm"),)), finish="refusal"), (Thinking("hm"),), "refusal"),
        (ModelReply(AssistantMessage((Text(""),))), (Text(""),), "stop"),
        (pieces(), (Text("four"),), "stop"),
        (lambda request: "four", (Text("four"),), "stop"),
        (later, (Text("four"),), "stop"),
        (lambda request: lambda request: "four", (Text("four"),), "stop"),
    ],
    ids=["text", "empty", "calls", "malformed", "both", "reply", "empty-part", "events", "function", "async", "nested"],
)
def test_every_kind_of_turn(turn, content, finish):
    *_, reply = said(ScriptedModel([turn]))
    assert reply.message.content == content
    assert reply.finish == finish


@pytest.mark.parametrize("error", [Overloaded("busy"), RuntimeError("bug"), KeyboardInterrupt()])
def test_an_exception_is_raised(error):
    with pytest.raises(type(error)):
        said(ScriptedModel([error]))


def test_pieces_are_streamed():
    reply = ModelReply(AssistantMessage((Thinking("hm"), Text("seven"), CALL)))
    assert said(ScriptedModel([reply], chunk=2)) == [
        ThinkingDelta("hm"),
        TextDelta("se"),
        TextDelta("ve"),
        TextDelta("n"),
        ToolCallStarted("call_0_0", "add"),
        ToolCallDelta("call_0_0", '{"a":1}'),
        ToolCallCompleted("call_0_0"),
        reply,
    ]


def test_one_function_is_asked_for_every_reply():
    model = ScriptedModel(lambda request: f"step {request.step}")
    assert said(model)[-1].message.text == "step 0"
    assert said(model, ModelRequest((), step=3))[-1].message.text == "step 3"
    assert [request.step for request in model.requests] == [0, 3]


def test_ids_differ_from_turn_to_turn():
    model = ScriptedModel([[("a", {}), ("b", {})], [("a", {})]])
    ids = [call.id for _ in range(2) for call in said(model)[-1].message.calls]
    assert ids == ["call_0_0", "call_0_1", "call_1_0"]


def test_usage_and_price():
    model = ScriptedModel(["x"], usage=Usage(1_000_000, 1_000_000), price=Price(input=1, output=2))
    assert Agent(model).run_sync("go").cost == 3
    assert ScriptedModel(["x"]).cost(Usage(1, 1)) is None


def test_a_script_that_is_used_up_says_so():
    result = Agent(ScriptedModel([])).run_sync("go")
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ScriptExhausted)
    assert "turn 1" in str(result.error)


def test_a_recorded_run_is_replayed_without_its_model():
    @tool
    def add(a: int) -> int:
        """Add."""
        return a + 1

    async def run():
        journal = MemoryJournal()
        first = await Agent(ScriptedModel([("so: ", [("add", {"a": 1})]), "two"]), tools=[add], journal=journal).run(
            "go"
        )
        replay = await ReplayModel.of(journal, first.run_id)
        return first, await Agent(replay, tools=[add]).run("go")

    first, again = asyncio.run(run())
    assert again.messages == first.messages
    assert again.usage == first.usage
    assert [step.model for step in again.steps] == [step.model for step in first.steps]


def replayed(turns, *, tools=(), limits=None, **options):
    """A recorded run, and the same agent's run on its replay."""

    async def run():
        journal = MemoryJournal()
        limited = {} if limits is None else {"limits": limits}
        first = await Agent(ScriptedModel(turns), tools=tools, journal=journal, **limited, **options).run("go")
        model = await ReplayModel.of(journal, first.run_id)
        return first, await Agent(model, tools=tools, **limited, **options).run("go")

    return asyncio.run(run())


REPLIES = [
    ModelReply(
        AssistantMessage((Thinking("hm", "signature"), Text("so: "), ToolCall("c1", "add", '{"a":1}', "item"))),
        Usage(1000, 20, 300, 40, 5),
        "tool_calls",
        "tool_use",
        "somebody:large",
        "req_1",
        Decimal("0.0123"),
    ),
    ModelReply(
        AssistantMessage((Thinking("ah", id="t2"), Text("two"))),
        Usage(1100, 3, estimated=True),
        "stop",
        "eot",
        "somebody:small",
        "req_2",
        Decimal("0.004"),
    ),
]


def only_what_was_said(result):
    return [
        (step.message, step.usage, step.finish, step.finish_detail, step.model, step.cost) for step in result.steps
    ], [event.request_id for event in result.events if isinstance(event, ModelReplied)]


@tool(effect="read")
def add(a: int) -> int:
    """Add."""
    return a + 1


def test_every_reply_is_replayed_exactly():
    first, again = replayed(REPLIES, tools=[add])
    assert only_what_was_said(again) == only_what_was_said(first)
    assert again.messages == first.messages
    assert again.cost == first.cost == Decimal("0.0163")
    assert again.usage == first.usage


def test_a_reply_is_replayed_whose_finish_an_earlier_version_took():
    async def run():
        journal = MemoryJournal()
        first = await Agent(ScriptedModel(["yes"]), journal=journal).run("go")
        events = [
            replace(event, finish="unknown") if isinstance(event, ModelReplied) else event
            for event in await journal.read(first.run_id)
        ]
        older = MemoryJournal()
        await older.append(first.run_id, 0, events)
        return await Agent(await ReplayModel.of(older, first.run_id)).run("go")

    assert asyncio.run(run()).text == "yes"


def test_a_run_under_a_limit_in_dollars_can_be_replayed():
    priced = functools.partial(ScriptedModel, price=Price(input=3, output=15), usage=Usage(2000, 100))

    async def run():
        journal, limits = MemoryJournal(), Limits(usd=Decimal("0.5"))
        turns = [[("add", {"a": n})] for n in range(3)] + ["done"]
        first = await Agent(priced(turns), tools=[add], journal=journal, limits=limits).run("go")
        return first, await Agent(await ReplayModel.of(journal, first.run_id), tools=[add], limits=limits).run("go")

    first, again = asyncio.run(run())
    assert first.stop.reason == again.stop.reason == "answered"
    assert first.cost == again.cost == Decimal("0.03")


def test_a_recording_without_costs_has_no_price():
    free, unknown = ModelReply(AssistantMessage(), cost=Decimal(0)), ModelReply(AssistantMessage())

    def model(*replies):
        return ReplayModel([ModelReplied(n, one.message, Usage(5, 5), cost=one.cost) for n, one in enumerate(replies)])

    assert model().cost(Usage(1, 1)) is None
    assert model(unknown).cost(Usage(1, 1)) is None
    assert model(free, unknown).cost(Usage(1, 1)) is None
    assert model(free).cost(Usage(1, 1)) == 0
    with pytest.raises(Misuse, match="price of replay is not known"):
        Agent(model(unknown), limits=Limits(usd=1))


@pytest.mark.parametrize(("mode", "answer"), [("prompted", "[1, 2]"), ("native", '{"result": [1, 2]}')])
def test_an_answer_of_a_type_is_replayed_however_it_was_asked_for(mode, answer):
    async def run():
        journal = MemoryJournal()
        first = await Agent(ScriptedModel([answer]), output=list[int], output_mode=mode, journal=journal).run("go")
        return first, await Agent(await ReplayModel.of(journal, first.run_id), output=list[int]).run("go")

    first, again = asyncio.run(run())
    assert first.output == again.output == [1, 2]


def test_a_replay_that_goes_further_says_so():
    async def run():
        journal = MemoryJournal()
        first = await Agent(ScriptedModel([""]), limits=Limits(steps=1), on_limit="stop", journal=journal).run("go")
        return await Agent(await ReplayModel.of(journal, first.run_id)).run("go")

    result = asyncio.run(run())
    assert isinstance(result.error, ScriptExhausted)
    assert "step 1" in str(result.error)


def test_real_models_can_be_forbidden(monkeypatch):
    agent = Agent("local:any@http://127.0.0.1:9/v1", retries=0)
    with forbid_real_models(), pytest.raises(Misuse, match="forbidden here"):
        agent.run_sync("go")
    monkeypatch.setenv("TREADLE_FORBID_MODELS", "1")
    with pytest.raises(Misuse, match="forbidden here"):
        agent.run_sync("go")
    with forbid_real_models(False):
        assert agent.run_sync("go").stop.reason == "model_error"
    with forbid_real_models():
        assert Agent("offline").run_sync("What is 2 + 3?").finished
        assert Agent(ScriptedModel(["hi"])).run_sync("go").text == "hi"


@pytest.mark.parametrize("arguments", [{"when": object()}, {"name": "\ud83d"}], ids=["an object", "a lone surrogate"])
def test_arguments_that_are_no_json_are_a_mistake_in_the_script(arguments):
    """The run ended as one of which the model had failed, by an error of the encoder's."""
    model = ScriptedModel(["Hm.", [("stock", arguments)]])
    agent = Agent(model)
    assert agent.run_sync("How much?").text == "Hm."
    with pytest.raises(Misuse, match="turn 2 of the script is none: the arguments of stock are not JSON, nor a text"):
        agent.run_sync("How much?")
