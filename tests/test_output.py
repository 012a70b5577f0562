"""The type that an answer must have: in words, by the provider's schema, and by a final tool."""

import asyncio
import json
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Literal

import pytest
from msgspec.json import encode
from pydantic import BaseModel, ConfigDict, computed_field, field_validator

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    SqliteJournal,
    StepSettings,
    Usage,
    handoff,
    has_tool_call,
    step_count,
    tool,
)
from treadle.kernel.events import StepPrepared
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, SystemMessage, Text, ToolCall, UserMessage
from treadle.mcp import MCPServer
from treadle.models import ModelReply
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.fallback import FallbackModel
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.profile import ModelProfile, OutputMode, profile_of
from treadle.testing import ReplayModel, ScriptedModel


@tool(effect="read")
def look(place: str) -> str:
    """Looks somewhere."""
    return f"{place}: 42"


class Answer(BaseModel):
    value: int


def test_output_is_validated_and_asked_for():
    model = ScriptedModel(['{"value": 42}'])
    result = Agent(model, instructions="Be exact.", output=Answer).run_sync("go")
    assert result.output == Answer(value=42)
    assert "JSON Schema" in model.requests[0].messages[0].text
    assert model.requests[0].output_schema["properties"].keys() == {"value"}


def test_output_in_a_fenced_block():
    assert Agent(ScriptedModel(['Here:\n```json\n{"value": 1}\n```']), output=Answer).run_sync("go").output == Answer(
        value=1
    )


def test_a_wrong_output_is_explained_to_the_model():
    model = ScriptedModel(["forty-two", '{"value": "many"}', '{"value": 42}'])
    result = Agent(model, output=Answer).run_sync("go")
    assert result.output == Answer(value=42)
    assert "value: Input should be a valid integer" in model.requests[2].messages[-1].text


def test_a_model_that_never_gets_the_output_right_is_stopped():
    result = Agent(model := ScriptedModel(lambda request: "no"), output=Answer).run_sync("go")
    assert result.stop.reason == "consecutive_errors"
    assert result.output is None
    assert result.text == "no"
    assert len(model.requests) == 4


def test_output_of_a_plain_type():
    assert Agent(ScriptedModel(["[1, 2]"]), output=list[int]).run_sync("go").output == [1, 2]


# By a final tool


def by_tool(turns, output=Answer, **options):
    model = ScriptedModel(turns)
    return Agent(model, output=output, output_mode="tool", **options).run_sync("go"), model


def test_a_final_tool_takes_the_answer():
    result, model = by_tool([[("look", {"place": "here"})], [("final_answer", {"value": 42})]], tools=[look])
    assert (result.output, result.stop.reason, result.text) == (Answer(value=42), "answered", '{"value":42}')
    assert [call.name for step in result.steps for call in step.calls] == ["look"]
    offered = model.requests[0].tools
    assert [spec.name for spec in offered] == ["look", "final_answer"]
    assert offered[1].input_schema["properties"].keys() == {"value"}
    assert model.requests[0].output_schema is None
    assert "final_answer" in model.requests[0].messages[0].text
    assert "JSON Schema" not in model.requests[0].messages[0].text


def test_text_that_is_the_answer_is_taken_too():
    result, model = by_tool(['{"value": 42}'])
    assert result.output == Answer(value=42)
    assert [spec.name for spec in model.requests[0].tools] == ["final_answer"]


def test_text_before_the_final_tool_is_kept_in_its_message_and_is_not_the_answer():
    said = AssistantMessage((Text("Here it is: {"), ToolCall("c1", "final_answer", '{"value": 42}')))
    result, _ = by_tool([ModelReply(said, Usage(1, 1), "tool_calls")])
    assert result.output == Answer(value=42)
    assert result.text == '{"value": 42}'
    assert result.messages[-1].text == 'Here it is: {{"value": 42}'


def test_wrong_arguments_of_the_final_tool_are_explained_to_the_model():
    result, model = by_tool([[("final_answer", {"value": "many"})], [("final_answer", {"value": 42})]])
    assert result.output == Answer(value=42)
    told = model.requests[1].messages[-1].text
    assert "value: Input should be a valid integer" in told
    assert "Call final_answer" in told


def test_a_model_that_never_calls_the_final_tool_is_stopped():
    result, model = by_tool(lambda request: "I would rather talk.")
    assert (result.stop.reason, result.output) == ("consecutive_errors", None)
    assert len(model.requests) == 4


def test_calls_beside_the_final_tool_are_made_and_the_answer_is_asked_for_again():
    turns = [[("look", {"place": "here"}), ("final_answer", {"value": 1})], [("final_answer", {"value": 42})]]
    result, _ = by_tool(turns, tools=[look])
    assert result.output == Answer(value=42)
    assert [call.result.text for step in result.steps for call in step.calls] == ["here: 42"]


def test_at_a_limit_the_answer_still_comes_by_the_final_tool():
    turns = [[("look", {"place": "a"})], [("look", {"place": "b"})], [("final_answer", {"value": 7})]]
    result, model = by_tool(turns, tools=[look], limits=Limits(steps=3))
    assert (result.output, result.stop.reason, result.finished) == (Answer(value=7), "max_steps", False)
    assert [spec.name for spec in model.requests[2].tools] == ["final_answer"]
    assert model.requests[2].tool_choice == "auto"


def test_a_tool_of_the_same_name_keeps_it():
    @tool(effect="read")
    def final_answer(value: int) -> str:
        """Looks like the end."""
        return "not the end"

    turns = [[("final_answer", {"value": 1})], [("final_answer_", {"value": 42})]]
    result, _ = by_tool(turns, tools=[final_answer])
    assert result.output == Answer(value=42)
    assert [call.result.text for step in result.steps for call in step.calls] == ["not the end"]


def test_a_reply_cut_off_in_the_final_tool_is_no_answer():
    said = AssistantMessage((ToolCall("c1", "final_answer", '{"value": 4'),))
    result, _ = by_tool([ModelReply(said, Usage(1, 1), "length")])
    assert (result.stop.reason, result.output) == ("length", None)


def test_the_journal_of_a_final_tool_is_replayed():
    result, _ = by_tool([[("look", {"place": "here"})], [("final_answer", {"value": 42})]], tools=[look])
    again = Agent(ReplayModel(result.events), tools=[look], output=Answer, output_mode="tool").run_sync("go")
    assert again.output == Answer(value=42)


class Node(BaseModel):
    name: str
    below: "list[Node]" = []


@dataclass
class Point:
    x: int
    y: int


class Rate(Enum):
    LOW = Decimal("0.07")


@pytest.mark.parametrize("mode", ["native", "tool"])
@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (Literal["yes", "no"], '"no"', "no"),
        (int | None, "null", None),
        (float, "1.5", 1.5),
        (Rate, '"0.07"', Rate.LOW),
        (list[Point], '[{"x": 1, "y": 2}]', [Point(1, 2)]),
        (Node | None, '{"name": "a", "below": [{"name": "b"}]}', Node(name="a", below=[Node(name="b")])),
    ],
)
def test_what_is_no_object_is_asked_for_in_one(mode: OutputMode, kind, json, value):
    model = ScriptedModel([f'{{"result": {json}}}', json])
    agent = Agent(model, output=kind, output_mode=mode)
    assert agent.run_sync("go").output == value
    assert agent.run_sync("go").output == value
    request = model.requests[0]
    schema = request.output_schema if mode == "native" else request.tools[0].input_schema
    assert (schema["type"], schema["required"]) == ("object", ["result"])


def test_an_object_with_a_field_of_that_name_is_not_unwrapped():
    class Outcome(BaseModel):
        result: int

    for mode in ("native", "tool", "prompted"):
        agent = Agent(ScriptedModel(['{"result": 3}']), output=Outcome, output_mode=mode)
        assert agent.run_sync("go").output == Outcome(result=3)


# Which way is taken


class Knows(ScriptedModel):
    def __init__(self, mode: OutputMode):
        super().__init__(lambda request: "{}")
        self.mode = mode

    def output_mode(self, tools: bool) -> OutputMode:
        return self.mode


def chat(url: str) -> HttpModel:
    return OpenAIChatModel("m", base_url=url, api_key="test-key-0123")


@pytest.mark.parametrize(
    ("model", "alone", "with_tools"),
    [
        (chat("https://api.openai.com/v1"), "native", "native"),
        (chat("https://x.openai.azure.com/v1"), "native", "native"),
        (chat("https://api.groq.com/openai/v1"), "native", "tool"),
        (chat("http://127.0.0.1:8080/v1"), "native", "tool"),
        (chat("https://api.deepseek.com/v1"), "tool", "tool"),
        (OpenAIResponsesModel("m", api_key="test-key-0123"), "native", "native"),
        (OpenAIResponsesModel("m", api_key="test-key-0123", base_url="http://127.0.0.1:8080/v1"), "native", "tool"),
        (AnthropicModel("m", api_key="test-key-0123"), "native", "native"),
        (AnthropicModel("m", api_key="test-key-0123", base_url="http://127.0.0.1:8080"), "tool", "tool"),
        (GoogleModel("gemini-2.5-pro", api_key="test-key-0123"), "native", "tool"),
        (GoogleModel("gemini-3-pro-preview", api_key="test-key-0123"), "native", "native"),
        (ScriptedModel([]), "prompted", "prompted"),
        (FallbackModel([Knows("native"), Knows("native")]), "native", "native"),
        (FallbackModel([Knows("native"), Knows("tool")]), "tool", "tool"),
        (FallbackModel([Knows("tool"), ScriptedModel([])]), "prompted", "prompted"),
    ],
)
def test_a_schema_is_native_only_where_the_model_can_still_call_tools(model, alone, with_tools):
    assert (profile_of(model).output_mode(False), profile_of(model).output_mode(True)) == (alone, with_tools)


def test_the_agent_does_as_the_model_says_unless_it_is_told_otherwise():
    for mode in ("native", "tool", "prompted"):
        model = Knows(mode)
        Agent(model, output=Answer, limits=Limits(steps=1)).run_sync("go")
        assert bool(model.requests[0].tools) == (mode == "tool")
        model = Knows(mode)
        Agent(model, output=Answer, output_mode="prompted", limits=Limits(steps=1)).run_sync("go")
        assert not model.requests[0].tools


@pytest.fixture
def wire():
    """A host over HTTP, and the requests that it was sent: it answers none of them."""
    bodies = []

    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(400)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
        server.shutdown()


@pytest.mark.parametrize("kind", [Answer, list[str]])
@pytest.mark.parametrize("how", ["prompted", "native", "handed on", "fallback", "a step's model"])
def test_a_host_holds_its_model_to_a_schema_only_where_that_was_asked_for(wire, kind, how):
    """Regression: what was to be asked for in words, and over a hand-off, was held to the schema all the same: open
    servers let a model call no tool then, and others refuse a schema that is no object's."""
    url, bodies = wire
    options = {"output": kind, "tools": [look], "retries": 0}
    if how in ("prompted", "native"):
        agent = Agent(chat(url), output_mode=how, **options)
    elif how == "handed on":
        agent = handing_on(Agent(chat(url), name="other", tools=[look], retries=0), output=kind)
    elif how == "fallback":
        agent = Agent(FallbackModel([chat(url), Knows("prompted")]), **options)
    else:
        agent = Agent(Knows("native"), prepare_step=lambda context: StepSettings(model=chat(url)), **options)
    agent.run_sync("go")
    assert [tool["function"]["name"] for tool in bodies[0]["tools"]] == ["look"]
    assert ("response_format" in bodies[0]) == (how == "native")


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize("given", ["", "Be brief.", "as before"])
def test_other_instructions_for_a_step_leave_what_the_answer_must_be(mode, given):
    """Regression: where they were given, nothing told the model the type, of which it was told after an answer that did
    not fit that it stood in its instructions."""

    def other(context):
        return StepSettings(instructions=context.messages[0].text if given == "as before" else given)

    model = ScriptedModel(["42", '{"value": 42}'])
    agent = Agent(model, instructions="Be exact.", output=Answer, output_mode=mode, prepare_step=other)
    assert agent.run_sync("go").output == Answer(value=42)
    typed = agent._config.output.instructions
    for request in model.requests:
        told = [message.text for message in request.messages if isinstance(message, SystemMessage)]
        assert told == [f"{'Be exact.' if given == 'as before' else given}\n\n{typed}".strip()]


def test_what_the_answer_must_be_counts_where_a_step_chooses_all_that_is_sent():
    def reserved(kind):
        def other(context):
            return StepSettings(messages=[UserMessage("go")], instructions="Be brief.")

        model = ScriptedModel(["4"])
        agent = Agent(model, output=kind, prepare_step=other, limits=Limits(tokens=100_000), output_mode="native")
        events = agent.run_sync("go").events
        (step,) = [event for event in events if isinstance(event, StepPrepared)]
        return step.reserve.tokens - step.reserve.reply, sum(len(one.text) for one in model.requests[0].messages)

    (small, little), (large, much) = reserved(int), reserved(Literal[4, *range(1000, 1400)])
    # The schema is sent as such too.
    assert large - small >= 2 * (much - little)


def test_another_model_is_told_as_much_of_the_tools_as_the_first():
    """Regression: an agent with a typed answer no longer said which of its tools change something."""

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    @tool(effect="write")
    def post(letter: str) -> str:
        """Posts a letter."""
        return "posted"

    first, second = Knows("native"), Knows("native")
    agent = Agent(first, tools=[look, pay, post], output=Answer, limits=Limits(steps=1))
    agent.run_sync("go")
    agent.with_model(second).run_sync("go")
    assert first.requests[0].tools == second.requests[0].tools
    assert [spec.changes for spec in second.requests[0].tools] == [False, None, True]
    asked = Agent(first, output=Answer, output_mode="tool").with_model(Knows("native")).with_model(Knows("prompted"))
    assert [spec.name for spec in asked._config.specs] == ["final_answer"]
    server = MCPServer.http("http://127.0.0.1:1/mcp", name="shop", effects={})
    stocked = Agent(first, tools=[server], output=Answer).with_model(chat("http://127.0.0.1:8080/v1"))
    assert [spec.name for spec in stocked._config.specs] == ["final_answer"]


def test_a_handed_on_schema_counts_in_what_is_reckoned():
    """Regression: what it takes of each request was not reckoned, so that a limit on tokens did not know of it."""
    other = Agent(Knows("native"), name="other", tools=[look])
    front = handing_on(other, output=Answer, journal=(journal := MemoryJournal()))
    asyncio.run(front.run("go"))
    below = next(info.run_id for info in asyncio.run(journal.list()) if "." in info.run_id)
    counted = asyncio.run(journal.read(below))[0].tool_tokens
    alone = (
        Agent(Knows("native"), tools=[look], output=Answer, output_mode="native").run_sync("go").events[0].tool_tokens
    )
    assert counted == alone


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(Misuse, match="output_mode"):
        Agent(ScriptedModel([]), output=Answer, output_mode="json")


def test_a_function_in_place_of_a_type_is_refused():
    """Regression: a function's parameters were asked for as if they were the answer."""
    with pytest.raises(Misuse, match="output takes a type"):
        Agent(ScriptedModel([]), output=lambda value: value)


def test_a_mode_without_a_type_is_refused():
    with pytest.raises(Misuse, match="output="):
        Agent(ScriptedModel([]), output_mode="tool")


# The journal


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        (Answer, {"value": 42}, Answer(value=42)),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
        (Decimal, "12345678901234567890.12", Decimal("12345678901234567890.12")),
        (date, "2026-11-21", date(2026, 11, 21)),
    ],
)
def test_an_answer_of_any_type_is_journaled_as_json_and_read_back_as_its_type(tmp_path, mode, kind, json, value):
    """Regression: an answer that was a Pydantic model could not be stored, and one read back was a dict."""

    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            agent = Agent(ScriptedModel([encode(json).decode()]), output=kind, output_mode=mode, journal=journal)
            result = await agent.run("go")
            stored = await journal.read(result.run_id)
            return result, stored, await agent.resume(result.run_id)

    result, stored, again = asyncio.run(work())
    assert (result.output, type(result.output)) == (value, type(value))
    assert (again.output, type(again.output)) == (value, type(value))
    assert stored[-1].output == json
    assert fold_all(result.events) == fold_all(stored)


def test_a_stored_answer_that_no_longer_fits_its_type_is_returned_as_json(tmp_path):
    class Stricter(BaseModel):
        value: int
        unit: str

    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            result = await Agent(ScriptedModel(['{"value": 42}']), output=Answer, journal=journal).run("go")
            return await Agent(ScriptedModel([]), output=Stricter, journal=journal).resume(result.run_id)

    assert asyncio.run(work()).output == {"value": 42}


def test_an_answer_that_is_no_number_is_kept_by_the_value_and_is_its_name_in_the_journal():
    result = Agent(ScriptedModel(["NaN"]), output=float).run_sync("go")
    assert math.isnan(result.output)
    assert result.events[-1].output == "NaN"


class Share(BaseModel):
    of: float | None


@pytest.mark.parametrize(("said", "of"), [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)])
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_an_answer_that_is_no_number_is_the_same_however_often_the_conversation_was_handed_on(said, of, levels):
    agent = Agent(ScriptedModel([f'{{"of": {said}}}']), output=Share, name="asked")
    for _ in range(levels):
        front = ScriptedModel([[(f"transfer_to_{agent.name}", {})]])
        agent = Agent(front, tools=[handoff(agent)], output=Share, name=f"front_of_{agent.name}")
    result = agent.run_sync("go")
    assert (repr(result.output), "no output" in result.stop.detail) == (repr(Share(of=of)), False)


# Every digit


EXACT = "100000000000000000.01"


class Sum(BaseModel):
    amount: Decimal
    share: float = 0.0


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize(
    ("kind", "json", "value", "stored"),
    [
        (Decimal, EXACT, Decimal(EXACT), EXACT),
        (list[Decimal], f"[{EXACT}, 1.5]", [Decimal(EXACT), Decimal("1.5")], [EXACT, 1.5]),
        (Sum, f'{{"amount": {EXACT}}}', Sum(amount=Decimal(EXACT)), {"amount": EXACT}),
        (Sum | None, f'{{"amount": {EXACT}}}', Sum(amount=Decimal(EXACT)), {"amount": EXACT}),
        # A float takes what it can of a number, as it always does.
        (Sum, '{"amount": 1, "share": 0.1000000000000000000001}', Sum(amount=Decimal(1), share=0.1), None),
    ],
)
def test_a_decimal_answer_keeps_every_digit(tmp_path, mode, kind, json, value, stored):
    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            agent = Agent(ScriptedModel([json]), output=kind, output_mode=mode, journal=journal)
            result = await agent.run("go")
            return result, (await journal.read(result.run_id))[-1].output, await agent.resume(result.run_id)

    result, output, again = asyncio.run(work())
    assert (result.output, again.output) == (value, value)
    assert stored is None or output == stored


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize("written", ["20.0", "-0.0", "1.50"])
def test_a_decimal_answer_keeps_the_zeros_at_its_end(mode, written):
    """Regression: of "20.0" it was "20", though "20.00" stayed as it was."""
    result = Agent(ScriptedModel([f'{{"amount": {written}}}']), output=Sum, output_mode=mode).run_sync("go")
    assert str(result.output.amount) == written


# Validators that raise what is no objection


class Rated(BaseModel):
    currency: str

    @field_validator("currency")
    @classmethod
    def known(cls, value: str) -> str:
        return {"EUR": "EUR"}[value]


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize("over", [False, True], ids=["its own", "over a hand-off"])
def test_a_validator_that_raises_something_else_ends_no_run(tmp_path, mode, over):
    """Regression: it came out of `run` and of each `resume`, and the run stood as under way for ever."""

    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            model = ScriptedModel(['{"currency": "XYZ"}', '{"currency": "EUR"}'])
            other = Agent(model, name="other")
            agent = (
                handing_on(other, output=Rated, output_mode=mode, journal=journal)
                if over
                else Agent(model, output=Rated, output_mode=mode, journal=journal)
            )
            result = await agent.run("go")
            return model, result, await agent.resume(result.run_id)

    model, result, again = asyncio.run(work())
    assert "It could not be checked: KeyError: 'XYZ'" in model.requests[1].messages[-1].text
    assert (result.output, result.finished) == (Rated(currency="EUR"), True)
    assert again.output == result.output


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
def test_an_answer_with_a_key_twice_is_sent_back(mode):
    first, last = '{"a": 1, "a": 2}', '{"a": 3}'
    if mode == "tool":
        first, last = [("final_answer", first)], [("final_answer", last)]
    model = ScriptedModel([first, last])
    result = Agent(model, output=dict[str, int], output_mode=mode).run_sync("go")
    assert result.output == {"a": 3}
    assert 'duplicate key "a"' in model.requests[1].messages[-1].text.replace("\\", "")


def test_an_answer_that_a_later_validator_cannot_check_is_returned_as_json(tmp_path):
    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            result = await Agent(ScriptedModel(['{"currency": "XYZ"}']), output=dict[str, str], journal=journal).run(
                "go"
            )
            return await Agent(ScriptedModel([]), output=Rated, journal=journal).resume(result.run_id)

    assert asyncio.run(work()).output == {"currency": "XYZ"}


# Hand-offs


class Total(BaseModel):
    """What Pydantic writes of it cannot be read again: a total that is worked out is none that may be given."""

    model_config = ConfigDict(extra="forbid")
    net: Decimal
    tax: Decimal

    @computed_field
    @property
    def gross(self) -> Decimal:
        return self.net + self.tax


def handing_on(other, **options):
    return Agent(ScriptedModel([[(f"transfer_to_{other.name}", {})]]), tools=[handoff(other)], **options)


@pytest.mark.parametrize("own", [None, Total], ids=["not its own", "its own"])
@pytest.mark.parametrize("deep", [1, 2])
def test_an_answer_over_a_hand_off_is_checked_and_is_a_value_of_its_type(tmp_path, own, deep):
    """Regression: it was a dict where Pydantic writes more of the value than it reads."""
    answer = f'{{"net": {EXACT}, "tax": 0.1}}'
    last = ScriptedModel(['{"net": "a lot", "tax": 1}', answer])

    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            agent = Agent(last, name="last", output=own)
            for name in ["middle", "first"][2 - deep :]:
                agent = handing_on(agent, name=name, output=Total if name == "first" else own, journal=journal)
            result = await agent.run("go")
            return result, await agent.resume(result.run_id)

    result, again = asyncio.run(work())
    assert len(last.requests) == 2
    assert result.output == again.output == Total(net=Decimal(EXACT), tax=Decimal("0.1"))
    assert result.stop.reason == "answered"


def test_a_hand_off_that_gives_no_answer_of_the_type_says_so():
    other = Agent(
        ScriptedModel([[("look", {"place": "a"})]]), tools=[look], name="other", output=Answer,
        stop_when=has_tool_call("look"),
    )  # fmt: skip
    result = handing_on(other, output=Answer).run_sync("go")
    assert result.output is None
    assert "there is no output" in result.stop.detail


# Stop conditions


@pytest.mark.parametrize(
    ("mode", "turn"),
    [
        ("prompted", ('{"value": 42}', [("look", {"place": "a"})])),
        ("native", ('{"value": 42}', [("look", {"place": "a"})])),
        ("tool", [("final_answer", {"value": 42}), ("look", {"place": "a"})]),
    ],
)
def test_a_run_that_a_condition_ended_takes_the_answer_that_its_last_reply_holds(tmp_path, mode, turn):
    async def work():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            agent = Agent(
                ScriptedModel([turn]), tools=[look], output=Answer, output_mode=mode, journal=journal,
                stop_when=has_tool_call("look"),
            )  # fmt: skip
            result = await agent.run("go")
            return result, await agent.resume(result.run_id)

    result, again = asyncio.run(work())
    assert (result.stop.reason, result.stop.detail) == (again.stop.reason, again.stop.detail)
    assert result.output == again.output == Answer(value=42)
    assert "no output" not in result.stop.detail
    assert len(result.tool_calls_made) == 1


def test_an_answer_of_an_earlier_reply_is_not_taken_for_the_last():
    turns = [('{"value": 1}', [("look", {"place": "a"})]), ("hm", [("look", {"place": "b"})])]
    agent = Agent(ScriptedModel(turns), tools=[look], output=Answer, stop_when=step_count(2))
    result = agent.run_sync("go")
    assert (result.stop.reason, result.output) == ("condition", None)
    assert "there is no output: the last reply holds no Answer" in result.stop.detail


@pytest.mark.anyio
@pytest.mark.parametrize("again", ["tool", "native", "prompted"])
@pytest.mark.parametrize("other", ["tool", "native", "prompted"])
@pytest.mark.parametrize("first", ["tool", "native", "prompted"])
async def test_who_goes_on_with_another_model_is_told_how_that_one_is_asked(first: Any, other: Any, again: Any) -> None:
    """Regression: it was told to call a final tool that it did not have, and nothing of the schema; or the reverse."""

    def model(mode: Any) -> ScriptedModel:
        scripted = ScriptedModel(
            lambda request: [("final_answer", {"result": 3})] if mode == "tool" else "3", name=mode
        )
        scripted.profile = ModelProfile(output=mode, output_beside_tools=mode)
        return scripted

    def told(asked: ScriptedModel) -> str:
        return "".join(one.text for one in asked.requests[-1].messages if isinstance(one, SystemMessage))

    agent = Agent(model(first), output=int, instructions="Count.", journal=MemoryJournal())
    run = await agent.run("How many?")
    for mode in (other, again):
        fresh, forked = model(mode), model(mode)
        await Agent(fresh, output=int, instructions="Count.").run("How many?")
        run = await agent.fork(run.run_id, at=0, model=forked)
        assert (run.output, told(forked)) == (3, told(fresh))
        # So is one that takes the run up; what the run began with stays as it is.
        takes_up = model(mode)
        more = agent.with_model(takes_up)
        resumed = await more.resume((await agent.run("How many?")).run_id, message="And now?")
        assert (resumed.output, told(takes_up)) == (3, told(fresh))
        assert (await more.replay(resumed.run_id)).same
    assert (await agent.with_model(model(again)).replay(run.run_id)).same
