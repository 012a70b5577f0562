"""Arguments that a server gives as an object and not as text: a tool is given what stands there, or is not called."""

import json
from decimal import Decimal

import pytest

from treadle import Agent, tool
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.bodies import event_json
from treadle.models.contents import arguments_in
from treadle.models.google import GoogleCodec
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
HERE = '"here"'
"""Where the arguments go."""


def google(call):
    part = {"functionCall": {"name": "pay"} | call}
    return {"candidates": [{"index": 0, "content": {"parts": [part]}, "finishReason": "STOP"}]}


BODIES = {
    "anthropic": (
        AnthropicCodec,
        {
            "content": [{"type": "tool_use", "id": "t", "name": "pay", "input": "here"}],
            "stop_reason": "tool_use",
        },
    ),
    "chat": (
        ChatCodec,
        {
            "choices": [
                {
                    "message": {"tool_calls": [{"id": "t", "function": {"name": "pay", "arguments": "here"}}]},
                    "finish_reason": "tool_calls",
                }
            ]
        },
    ),
    "responses": (
        ResponsesCodec,
        {
            "status": "completed",
            "output": [{"type": "function_call", "call_id": "t", "name": "pay", "arguments": "here"}],
        },
    ),
    "google": (GoogleCodec, google({"args": "here"})),
    "google, in pieces": (
        GoogleCodec,
        google({"args": "here", "partialArgs": [{"jsonPath": "$.why", "stringValue": "a"}]}),
    ),
    "bedrock": (
        BedrockCodec,
        {
            "output": {"message": {"content": [{"toolUse": {"toolUseId": "t", "name": "pay", "input": "here"}}]}},
            "stopReason": "tool_use",
        },
    ),
}


def call_of(dialect: str, arguments: str):
    codec, body = BODIES[dialect]
    reply = codec().decode_body(event_json(json.dumps(body).replace(HERE, arguments).encode()))[-1]
    assert isinstance(reply, ModelReply)
    (call,) = reply.message.calls
    return call


@pytest.mark.parametrize("dialect", BODIES)
@pytest.mark.parametrize(
    ("arguments", "paid"),
    [
        ('{"amount": 1e400}', None),
        ('{"amount": [1, {"deep": -1e999}]}', None),
        ('{"amount": 1.5, "why": "null"}', 1.5),
        ('{"amount": null}', "nothing"),
        ('{"amount": 123456789012345678901234567890}', 123456789012345678901234567890),
        ('{"amount": 1e308, "why": null}', 1e308),
        ('{"amount": 2, "why": "\\ud83d\\ude00 \\ud83d"}', 2),
    ],
)
async def test_a_number_that_no_float_holds_is_an_error_and_no_null(dialect, arguments, paid):
    given = []

    @tool(effect="write")
    def pay(amount: object = 0, why: str | None = None) -> str:
        """Pays."""
        given.append("nothing" if amount is None else amount)
        return "paid"

    call = call_of(dialect, arguments)
    result = await Agent(ScriptedModel([[("pay", call.arguments)], "Done."]), tools=[pay]).run("go")
    assert given == ([] if paid is None else [paid])
    assert result.text == "Done."


def test_what_json_has_no_text_for_is_told_as_before_where_a_null_stands_beside_it():
    given = {"none": None, "text": "\ud83d", "amount": Decimal("1.50")}
    assert json.loads(arguments_in(given)) == {"none": None, "text": "?", "amount": "1.50"}
    assert arguments_in({"none": None, "amount": float("inf")}) == '{"none": null, "amount": Infinity}'
