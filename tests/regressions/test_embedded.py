"""What engineers meet who build treadle into a product: LangChain, spans, long errors, redaction."""

import json
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from mcp import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import (
    Agent,
    Budget,
    Finish,
    Limits,
    MemoryJournal,
    Misuse,
    PrepareStep,
    StepSettings,
    Tool,
    ToolContext,
    ToolError,
    ToolProgress,
    ToolResult,
    ToolSearch,
    ask_before,
    tool,
)
from treadle.kernel.events import ErrorInfo, ModelFailed
from treadle.kernel.messages import AssistantMessage, Text, Usage
from treadle.mcp import server_of
from treadle.models import ModelReply, Overloaded, TextDelta
from treadle.models.langchain import LangChainModel, from_langchain
from treadle.models.text_tools import TextTools
from treadle.telemetry import Telemetry
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def pay(amount: int) -> str:
    """Pays an amount.

    Args:
        amount: in euros.
    """
    return f"paid {amount}"


def read_in_pieces_of(chunk, text):
    """The calls of a reply in text that comes in pieces of so many characters, as they were written."""
    model = ScriptedModel([text, "Done."], chunk=chunk)
    result = Agent(TextTools(model), tools=[pay], limits=Limits(steps=3)).run_sync("Pay.")
    return [(call.name, call.call.arguments) for call in result.steps[0].calls]


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ('"pay[4]</l>', "invalid_call"),
        (':pay("")</tool_call>', "invalid_call"),
        ('pay{"amount":8}</call>', "pay"),
        ('"<function>"\npay{"amount":8}</n>', "pay"),
        ('pay(3) "<function=pay>{"amount":8}</function>\n<function=pay>{"amount":8}</function>\n', "pay"),
    ],
)
def test_a_reply_in_text_is_read_alike_however_it_was_cut_on_its_way(text, called):
    whole = read_in_pieces_of(len(text), text)
    assert {name for name, _ in whole} == {called}
    assert [read_in_pieces_of(chunk, text) for chunk in (1, 2, 3, 5)] == [whole] * 4


class Sends(BaseChatModel):
    """A chat model that asks for one call and then answers, and sends what it is given as integrations do: as JSON."""

    arguments: str
    sent: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "sends"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        raise AssertionError("it streams")

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        calls = [call["args"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
        self.sent.append(json.dumps(calls, ensure_ascii=False, allow_nan=False).encode().decode())
        chunk = AIMessageChunk(
            content="" if not calls else "Done.",
            tool_call_chunks=[]
            if calls
            else [{"name": "pay", "args": self.arguments, "id": "c1", "index": 0, "type": "tool_call_chunk"}],
        )
        yield ChatGenerationChunk(message=chunk)


@pytest.mark.parametrize("arguments", [r'{"amount":"\ud83d"}', '{"amount":1e999}', '{"amount":[-1e400]}'])
async def test_arguments_that_no_request_can_hold_do_not_poison_a_history_of_langchain(arguments):
    theirs = Sends(arguments=arguments)
    result = await Agent(LangChainModel(theirs), tools=[pay]).run("Pay.")
    assert (result.stop.reason, result.text) == ("answered", "Done.")
    assert result.tool_calls_made[0].is_error
    assert json.loads(theirs.sent[-1]) == [{"invalid_json": arguments}]


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", tool_calls=[{"id": "c", "name": "pay", "args": {"amount": Decimal("1.1")}}]),
        HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,@a"}}]),
    ],
)
def test_a_message_of_langchain_that_cannot_be_read_is_named(message):
    with pytest.raises(Misuse, match=f"message 1, of type {type(message).__name__}, cannot be read"):
        from_langchain([HumanMessage("hello"), message])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"amount":12345678901234567.123456789}', '{"amount":12345678901234567.123456789}'),
        ('{"amount":1e400}', r'"{\"amount\":1e400}"'),
        ('{"amount":NaN}', r'"{\"amount\":NaN}"'),
        (r'{"amount":"\ud800"}', r'"{\"amount\":\"\\ud800\"}"'),
    ],
)
async def test_spans_tell_arguments_as_they_were_written_and_in_json(arguments, told):
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer_provider=tracers, content=True)
    await Agent(ScriptedModel([[("pay", arguments)], "Done."]), tools=[pay], telemetry=telemetry).run("Pay.")
    telemetry.flush()
    said = [
        span.attributes["gen_ai.output.messages"] for span in exporter.get_finished_spans() if span.name[:4] == "chat"
    ]
    assert f'"arguments":{told}' in said[0]
    assert json.loads(said[0].encode(), parse_constant=pytest.fail)


given = []


@tool
def note(anything: Any) -> str:
    """Notes something down."""
    given.append(anything)
    return "noted"


FORM = {"type": "object", "properties": {"anything": {}}, "required": ["anything"]}
by_schema = Tool.from_schema("note", "Notes something down.", FORM, lambda anything: note(anything))


@pytest.mark.parametrize("one", [note, by_schema])
@pytest.mark.parametrize("endless", ["1e400", "[-1E+999]", f'{{"a":{"9" * 309}.5}}', f"17{'0' * 300}e10"])
async def test_a_number_that_no_float_holds_is_an_error_and_no_other_argument(one, endless):
    given.clear()
    model = ScriptedModel([[("note", f'{{"anything":{endless}}}')], [("note", '{"anything":1e99}')], "Done."])
    result = await Agent(model, tools=[one]).run("Note it.")
    refused, made = result.tool_calls_made
    assert "should be a finite number" in refused.result.text
    assert (made.is_error, given) == (False, [1e99])


@pytest.mark.parametrize("endless", [float("inf"), [float("nan")], {"a": float("-inf")}])
async def test_no_number_becomes_null_in_arguments_that_a_person_or_a_hook_gives(endless):
    given.clear()
    script = [[("note", {"anything": 1})], "Done."]
    asking = Agent(ScriptedModel(script), tools=[note], approvals=[ask_before("note")])
    waiting = await asking.run("Note it.")
    with pytest.raises(Misuse, match="is no number that JSON has"):
        await asking.resume(waiting, approve={waiting.pending[0].call_id: {"anything": endless}})
    changing = Agent(ScriptedModel(script), tools=[note], on_tool_call=lambda call: {"anything": endless})
    with pytest.raises(Misuse, match="is no number that JSON has"):
        await changing.run("Note it.")
    assert given == []


async def test_of_a_withheld_call_it_is_said_that_it_was_not_executed():
    model = ScriptedModel(lambda request: [("pay", {"amount": 1})] if request.tool_choice != "none" else "Enough.")
    result = await Agent(model, tools=[pay, note]).run("Pay.")
    (refused,) = next(step for step in result.steps if step.withheld).calls
    assert "is withheld" in refused.result.text
    assert json.loads(refused.result.text)["executed"] is False


@pytest.mark.parametrize("words", ["It is away.", "\x01" * 5000, '"' * 5000])
async def test_an_error_that_is_cut_is_json_and_says_whether_the_call_was_executed(words):
    @tool(max_output=150)
    def fetch() -> str:
        """Fetches the list."""
        raise ToolError(words, available=["number"] * 1000, executed=False)

    result = await Agent(ScriptedModel([[("fetch", {})], "Done."]), tools=[fetch]).run("Fetch it.")
    told = result.tool_calls_made[0].result.text
    assert len(told) <= 150
    assert (json.loads(told)["error"], json.loads(told)["executed"]) == (True, False)


async def test_of_a_thousand_tools_a_call_that_is_not_offered_says_that_it_was_not_executed():
    def numbered(number):
        return tool(name=f"{'very_' * 11}{number:04}", description="Looks it up.", effect="read")(lambda: "found")

    many = [numbered(number) for number in range(1000)]
    names = [one.name for one in many]
    model = ScriptedModel([[(names[0], {})], "Done."])
    choose = StepSettings(tools=names[1:])
    result = await Agent(model, tools=many, prepare_step=lambda context: choose).run("Look it up.")
    assert json.loads(result.tool_calls_made[0].result.text)["executed"] is False


def searched(*turns, journal, **options):
    def report(topic):
        return tool(name=f"report_{topic}", description=f"Reports the {topic}.", effect="read")(lambda: topic)

    search = ToolSearch([report(topic) for topic in ("sales", "stock", "taxes", "visits")], most=1)
    return Agent(ScriptedModel([*turns]), tools=search.tools, prepare_step=search, journal=journal, **options)


@pytest.mark.parametrize("hidden", ["taxes", "stock"])
async def test_a_run_that_searched_tools_by_redacted_words_is_replayed_as_it_was(hidden):
    journal = MemoryJournal(redact=lambda text: text.replace(hidden, "[hidden]"))
    turns = [[("find_tools", {"words": "taxes"})], [("report_taxes", {})], [("report_stock", {})], "Done."]
    result = await searched(*turns, journal=journal).run("What of the stock?")
    assert [call.is_error for call in result.tool_calls_made] == [False] * 3
    again = await searched(journal=journal).replay(result.run_id)
    assert again.same, str(again)


@pytest.mark.parametrize("hide", ["taxes", "stock", ""])
async def test_a_run_under_redaction_is_offered_after_a_pause_what_it_was_before(hide):
    journal = MemoryJournal(redact=lambda text: text.replace(hide, "[hidden]") if hide else "[hidden]")
    turns = [[("find_tools", {"words": "taxes"})], [("report_stock", {})], [("report_taxes", {})], "Done."]
    agent = searched(*turns, journal=journal, approvals=[ask_before("report_stock")])
    waiting = await agent.run("What of the stock?")
    assert waiting.stop.reason == "waiting"
    result = await agent.resume(waiting, approve=waiting.pending)
    offered = [[one.name for one in request.tools] for request in agent.model.requests]
    assert [call.is_error for call in result.tool_calls_made] == [False] * 3
    assert offered == [["report_stock", "find_tools"], *[["report_stock", "report_taxes", "find_tools"]] * 3]
    assert [step.offered for step in result.steps] == [tuple(names) for names in offered]
    again = await searched(journal=journal, approvals=[ask_before("report_stock")]).replay(result.run_id)
    assert again.same, str(again)


def asked_by_hand(budget=None):
    run = Agent(ScriptedModel([]), tools=[pay], budget=budget).start("Pay.")
    prepare = run.next()
    assert isinstance(prepare, PrepareStep)
    run.feed(run.prepare(prepare))
    return run


@pytest.mark.parametrize("stray", [TextDelta("Hel"), RuntimeError("busy"), None])
async def test_by_hand_what_is_no_event_is_refused(stray):
    run = asked_by_hand()
    with pytest.raises(Misuse, match="feed takes an event, or the ModelReply or ModelError"):
        run.feed(stray)


@pytest.mark.parametrize("failed", [Overloaded("busy"), ModelFailed(0, ErrorInfo("overloaded", "busy"))])
async def test_by_hand_a_failed_call_is_the_error_or_an_event(failed):
    run = asked_by_hand()
    run.feed(failed)
    end = run.next()
    assert isinstance(end, Finish)
    run.feed(end.event())
    assert (run.result.stop.reason, run.result.stop.detail) == ("model_error", "overloaded: busy")
    assert run.events[-1].at >= run.events[-2].at >= run.events[0].at > 0
    assert isinstance(run.result.error, Overloaded)


async def test_by_hand_a_reply_that_no_model_may_give_is_paid_for():
    budget = Budget(tokens=100_000)
    run = asked_by_hand(budget)
    run.feed(ModelReply(AssistantMessage((Text("Hm."),)), Usage(input_tokens=70, output_tokens=9), "unknown"))
    await run.commit()
    end = run.next()
    assert isinstance(end, Finish)
    run.feed(end.event())
    assert (run.result.stop.reason, run.result.usage.total_tokens) == ("model_error", 79)
    assert (budget.spent().tokens, budget.spent().held_tokens) == (79, 0)


@pytest.mark.parametrize(
    "given",
    ['{"x":1e400}', '{"x":NaN}', r'{"x":"\ud83d"}', '{"x":' * 240 + "1" + "}" * 240, '{"x":' * 3000 + "1" + "}" * 3000],
)
async def test_a_result_that_cannot_be_sent_as_it_stands_is_no_structured_content(given):
    async def fetch() -> str:
        return given

    form = {"type": "object", "properties": {}}
    served = Tool.from_schema("fetch", "Fetches a thing.", form, fetch, effect="read", output_schema={"type": "object"})
    async with Client(server_of([served])) as client:
        result = await client.call_tool("fetch", {})
    assert (result.is_error, result.structured_content) == (True, None)
    assert "fetch was called, and what it gave is not of the form that is listed" in result.content[0].text
    assert result.content[1].text == given


@pytest.mark.parametrize("update", ["half \ud83d", {"progress": 1, "message": "half \ud83d"}, {"half \ud83d": {1, 2}}])
async def test_what_a_tool_reports_can_be_written_by_whoever_is_told(update):
    @tool(effect="read")
    async def work(context: ToolContext) -> str:
        """Works for long."""
        context.report(update)
        return "worked"

    told = []
    agent = Agent(ScriptedModel([[("work", {})], "Done."]), tools=[work])
    await agent.run("Work.", on_event=told.append)
    (reported,) = [event.update for event in told if isinstance(event, ToolProgress)]
    assert "half ?" in json.dumps(reported, ensure_ascii=False).encode().decode()


async def test_of_an_error_without_words_the_model_is_told_that_there_are_none():
    @tool(effect="read")
    def quiet() -> str:
        """Fails without a word."""
        raise ToolError(" ", code=7)

    @tool(effect="read")
    def mute() -> ToolResult:
        """Says that it failed, and nothing else."""
        return ToolResult("", is_error=True)

    result = await Agent(ScriptedModel([[("quiet", {}), ("mute", {})], "Done."]), tools=[quiet, mute]).run("Try.")
    told = [json.loads(call.result.text) for call in result.tool_calls_made]
    nothing = {"error": True, "message": "It failed, and no reason was given."}
    assert told == [nothing | {"code": 7}, nothing]
