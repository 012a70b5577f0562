"""What OpenAI's clients post of what was said before: calls beside `tool_choice="none"`, and what was refused."""

import json

import pytest
from served import serving

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
NAMED = {"name": "find", "description": "Finds something.", "parameters": {"type": "object", "properties": {}}}
FIND = {"type": "function", "function": NAMED}
FLAT = {"type": "function", **NAMED}


def clerk():
    def turn(request):
        if request.tools and request.messages[-1].role == "user":
            return [("find", {})]
        return " / ".join(f"{message.role} {message.text}".strip() for message in request.messages)

    return Agent(ScriptedModel(turn), tools=[], name="clerk")


async def test_a_history_with_calls_is_gone_on_with_where_no_tool_is_to_be_called():
    """It was refused as naming "no tool of yours", with the advice to declare what was declared."""
    said, none = {"role": "user", "content": "Find it."}, {"tools": [FIND], "tool_choice": "none"}
    async with serving(app([clerk()], journal=MemoryJournal())) as client:
        body = {"model": "clerk", "messages": [said], "tools": [FIND]}
        asked = (await client.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"]
        came = {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "it is here"}
        history = [said, asked, came]
        more = body | none | {"messages": [*history, {"role": "user", "content": "So?"}]}
        answer = await client.post("/v1/chat/completions", json=more)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"].endswith("tool it is here / user So?")
        refused = await client.post("/v1/chat/completions", json=body | none | {"messages": history})
        assert refused.status_code == 400
        assert "go on with a run that has your tools" in refused.text
        assert "Declare it" not in refused.text


async def test_so_is_one_of_responses():
    said, none = {"role": "user", "content": "Find it."}, {"tools": [FLAT], "tool_choice": "none"}
    async with serving(app([clerk()], journal=MemoryJournal())) as client:
        body = {"model": "clerk", "input": [said], "tools": [FLAT]}
        (asked,) = (await client.post("/v1/responses", json=body)).json()["output"]
        came = {"type": "function_call_output", "call_id": asked["call_id"], "output": "it is here"}
        more = body | none | {"input": [said, asked, came, {"role": "user", "content": "So?"}]}
        answer = await client.post("/v1/responses", json=more)
        assert answer.status_code == 200, answer.text
        assert "tool it is here / user So?" in json.dumps(answer.json()["output"])
        refused = await client.post("/v1/responses", json=body | none | {"input": [said, asked, came]})
        assert refused.status_code == 400
        assert "go on with a run that has your tools" in refused.text


async def test_what_an_answer_refused_was_said_before():
    """Clients send an answer back as it came, with its words in `refusal`: the model saw two questions in a row."""
    refused = {"role": "assistant", "content": None, "refusal": "I may not."}
    messages = [{"role": "user", "content": "Do it."}, refused, {"role": "user", "content": "Why?"}]
    async with serving(app([clerk()], journal=MemoryJournal())) as client:
        answer = await client.post("/v1/chat/completions", json={"model": "clerk", "messages": messages})
    assert answer.json()["choices"][0]["message"]["content"] == "user Do it. / assistant I may not. / user Why?"
