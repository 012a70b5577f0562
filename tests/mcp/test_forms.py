"""Forms, both ways: choices are shown to the person, what is left out is filled in, and no form of a server's hurts."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

from treadle import Agent, MemoryJournal, external_tool
from treadle.mcp import MCPServer, server_of
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel
from treadle.tools.builtin import ask_user

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
of_before = runpy.run_path(str(SCRIPTED.with_name("handshake.py")))["of_before"]
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
SIZES = {"question": "Which size?", "choices": ["S", "M", "S"]}


async def answered(mode, served, arguments, **filled):
    """What comes of a call that the person is asked about, and the form that they were shown."""
    forms = []

    async def person(_, params):
        forms.append(params)
        return ElicitResult(action="accept", content=filled)

    async with Client(server_of([served]), mode=mode, elicitation_callback=person) as client:
        found = await client.call_tool(served.spec.name, arguments)
    return found.content[0].text, forms[0]


@MODES
async def test_the_choices_of_ask_user_are_shown_at_the_client_s_end(mode):
    text, form = await answered(mode, ask_user, SIZES, answer="M")
    assert text == "M"
    assert form.message == "Which size?"
    assert form.requested_schema["properties"]["answer"] == {"type": "string", "title": "Answer", "enum": ["S", "M"]}


@MODES
@pytest.mark.parametrize(
    ("filled", "wanted"),
    [({"other": "XXL"}, "XXL"), ({"answer": "M", "other": "XXL"}, "XXL"), ({}, "(The person gave no answer.)")],
)
async def test_another_answer_than_the_choices_may_be_given(mode, filled, wanted):
    text, _ = await answered(mode, ask_user, SIZES, **filled)
    assert text == wanted


@pytest.mark.parametrize("choices", [[], ["a", 5], [" "], "abc", [["a"]]])
async def test_what_cannot_be_chosen_from_is_no_choice(choices):
    given = {"type": "object", "properties": {"question": {"type": "string"}, "choices": {}}}
    asks = external_tool("asks", "Asks.", given, wait=True)
    text, form = await answered("auto", asks, {"question": "What?", "choices": choices}, answer="x")
    assert text == "x"
    assert list(form.requested_schema["properties"]) == ["answer"]


@pytest.mark.parametrize("era", ["newest", "before"])
@pytest.mark.parametrize(("answer", "wanted"), [("M", "M"), ("XXL", "XXL"), ({"other": "L"}, "L")])
async def test_a_run_that_waits_for_a_server_of_ours_is_answered_with_a_choice_or_without(era, answer, wanted):
    kept, journal = MemoryJournal(), MemoryJournal()

    def shop():
        served = server_of([ask_user], journal=kept)
        transport = lambda _: of_before(served, before=era == "before")  # noqa: E731
        return MCPServer("shop", transport, Secrets({}), "in memory", {"ask": "pause"})

    waiting = await Agent(ScriptedModel([[("shop__ask_user", SIZES)]]), tools=[shop()], journal=journal).run("go")
    (one,) = waiting.pending
    assert "Which size? (answer: S | M, other: string)" in one.question
    agent = Agent(ScriptedModel(["done"]), tools=[shop()], journal=journal)
    done = await agent.resume(waiting.run_id, results={one.call_id: answer})
    assert done.steps[0].calls[0].result.text == wanted


ASKS = """
def called(params):
    params = {"mode": "form", "message": "Tell.", "requestedSchema": FORM}
    send(id="q", method="elicitation/create", params=params)
    while True:
        heard = json.loads(sys.stdin.readline())
        if heard.get("id") == "q": break
    return {"content": [{"type": "text", "text": json.dumps(heard.get("result", heard.get("error")))}]}
"""


def asking(form):
    script = f"FORM = json.loads({json.dumps(form)!r})\n{ASKS}"
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="evil", ask="pause")


async def waiting_for(form):
    journal = MemoryJournal()
    return journal, await Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[asking(form)], journal=journal).run(
        "go"
    )


async def content_of(form, answer):
    journal, waiting = await waiting_for(form)
    agent = Agent(ScriptedModel(["done"]), tools=[asking(form)], journal=journal)
    done = await agent.resume(waiting.run_id, results={waiting.pending[0].call_id: answer})
    return json.loads(done.steps[0].calls[0].result.text)["content"]


async def test_an_answer_that_is_none_of_the_choices_is_asked_for_again_and_nothing_is_called():
    form = {"type": "object", "properties": {"size": {"type": "string", "enum": ["S", "M"]}}}
    journal, waiting = await waiting_for(form)
    for answer in ("XXL", {"size": "XXL"}):
        agent = Agent(ScriptedModel(["done"]), tools=[asking(form)], journal=journal)
        waiting = await agent.resume(waiting.run_id, results={waiting.pending[0].call_id: answer})
        assert waiting.pending[0].question.startswith("size is to be S | M. evil asks: Tell. (size: S | M)")
    agent = Agent(ScriptedModel(["done"]), tools=[asking(form)], journal=journal)
    done = await agent.resume(waiting.run_id, results={waiting.pending[0].call_id: "M"})
    assert json.loads(done.steps[0].calls[0].result.text)["content"] == {"size": "M"}


@pytest.mark.parametrize("answer", [{}, {"nope": "Ann"}, {"who": 5}, {"who": "Ann", "nope": 1}, '{"who": null}'])
async def test_so_is_one_that_the_form_does_not_take(answer):
    """It was sent, in a call that was made again: a write was made once more, with an answer that was none."""
    form = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    journal, waiting = await waiting_for(form)
    (before,) = waiting.pending
    agent = Agent(ScriptedModel(["done"]), tools=[asking(form)], journal=journal)
    waiting = await agent.resume(waiting.run_id, results={before.call_id: answer})
    assert waiting.pending[0].question.startswith("the answer ")
    assert waiting.pending[0].question.endswith(f". {before.question}")


async def test_so_is_one_in_the_newest_era_where_it_ended_the_call():
    async def listed(_, __):
        return ListToolsResult(tools=[Tool(name="t", description="Asks.", input_schema={"type": "object"})])

    async def called(_, params):
        if params.input_responses is None:
            form = {"type": "object", "properties": {"size": {"type": "string", "enum": ["S", "M"]}}}
            asked = ElicitRequest(params=ElicitRequestFormParams(message="Which?", requested_schema=form))
            return InputRequiredResult(input_requests={"q": asked}, request_state="s")
        return CallToolResult(content=[TextContent(type="text", text=str(params.input_responses["q"].content))])

    def shop():
        served = Server("shop", on_list_tools=listed, on_call_tool=called)
        transport = lambda _: of_before(served, before=False)  # noqa: E731
        return MCPServer("shop", transport, Secrets({}), "in memory", {"ask": "pause"})

    journal = MemoryJournal()
    waiting = await Agent(ScriptedModel([[("shop__t", {})]]), tools=[shop()], journal=journal).run("go")
    agent = Agent(ScriptedModel(["done"]), tools=[shop()], journal=journal)
    again = await agent.resume(waiting.run_id, results={waiting.pending[0].call_id: "XXL"})
    assert again.pending[0].question == "size is to be S | M. shop asks: Which? (size: S | M)"
    agent = Agent(ScriptedModel(["done"]), tools=[shop()], journal=journal)
    done = await agent.resume(again.run_id, results={again.pending[0].call_id: "M"})
    assert done.steps[0].calls[0].result.text == "{'size': 'M'}"


FIELDS = {
    "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
    "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ann", "b"]},
    "many": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
    "titled": {"type": "array", "items": {"anyOf": [{"const": "z", "title": "Zed"}]}},
    "age": {"type": "integer", "default": 30},
}


async def test_a_run_that_waits_shows_what_can_be_chosen():
    _, waiting = await waiting_for({"type": "object", "properties": FIELDS})
    assert (
        "(colour: r (Red) | g (Green), old: a (Ann) | b, many: some of x | y, titled: some of z (Zed), age: integer)"
        in waiting.pending[0].question
    )


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("g", {"colour": "g"}),
        ("y", {"many": ["y"]}),
        ({"old": "a", "age": 5}, {"old": "a", "age": 5}),
        ({}, {}),
    ],
)
async def test_an_answer_goes_to_the_field_that_it_is_of_and_defaults_to_the_others(answer, wanted):
    """Defaults were filled in where a function was asked, and not where the run waited."""
    assert await content_of({"type": "object", "properties": FIELDS}, answer) == {"age": 30, **wanted}


@pytest.mark.parametrize("answer", ["1.10", "1e5", "12345678901234567890.10", "true", "[1, 2]", "007", "no"])
async def test_a_field_for_text_is_given_what_the_person_wrote(answer):
    """It was given the number, `1.1` for 1.10, and `True` for true."""
    form = {"type": "object", "properties": {"version": {"type": "string"}}, "required": ["version"]}
    assert await content_of(form, answer) == {"version": answer}


@pytest.mark.parametrize(("answer", "wanted"), [('"a b"', "a b"), (True, "true"), (1.5, "1.5"), (7, "7")])
async def test_a_field_for_text_is_given_other_data_as_json_writes_it(answer, wanted):
    form = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    assert await content_of(form, answer) == {"word": wanted}


@pytest.mark.parametrize(
    "form",
    [
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": 5, "b": None}, "required": 7},
        {"type": "object", "properties": {"a": {"enum": {"b": 1}, "oneOf": "abc", "items": []}, "c": {}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"] * 20_000}}},
        {"type": "object"},
    ],
)
async def test_a_form_that_is_none_does_no_harm(form):
    journal, waiting = await waiting_for(form)
    for one in waiting.pending:
        assert len(one.question) < 15_000
        done = await Agent(ScriptedModel(["done"]), tools=[asking(form)], journal=journal).resume(
            waiting.run_id, results={one.call_id: None}
        )
        assert done.finished
