"""Google, Bedrock and the others where it hurts: slow bodies, tokens and signatures, other models in their place."""

import asyncio
import json
import time

import pytest
from stream_writers import writers

from treadle import Agent, Image, Limits, Retries, Text, tool
from treadle.kernel.events import ModelFailed
from treadle.kernel.messages import AssistantMessage, Thinking, ToolCall, ToolMessage, UserMessage
from treadle.models import FallbackModel
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.bedrock_model import BedrockModel
from treadle.models.errors import AuthenticationFailed, BadRequest, ConnectionFailed, Overloaded, QuotaExceeded
from treadle.models.failures import redact
from treadle.models.google import GoogleCodec
from treadle.models.google_model import GoogleModel
from treadle.models.hosts import OPENAI
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply, ModelRequest

pytestmark = pytest.mark.anyio
SOON = Retries(attempts=2, base=0.001)


@pytest.fixture
def anyio_backend():
    return "asyncio"


DIALECTS = ("Messages", "Chat", "Responses", "Google", "Converse")


def talking(serve, dialect, script, **options):
    server = serve(script)
    return getattr(writers(), dialect).model("m", base_url=server.url, api_key="a-made-up-key", **options)


def says(dialect, *turns):
    """A script that sends the pieces of one turn after the other."""

    def script(peer):
        peer.begin()
        for piece in turns[min(peer.number, len(turns) - 1)]:
            peer.chunk(piece)
        peer.end()

    return script


# Slow bodies


def trickled(how, pieces):
    def script(peer):
        stream = b"".join(pieces)
        try:
            if how == "an error":
                head = b"HTTP/1.1 500 Bad\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
                peer.send(head)
            elif how == "headers":
                head = b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 300
                for at in range(len(head)):
                    peer.send(head[at : at + 1])
                    time.sleep(0.02)
            else:
                peer.begin(**({"content_type": "application/json"} if how == "a body" else {}))
            if how in ("an error", "a body"):
                stream = b'{"error": "' + b"x" * 300
            for at in range(300):
                peer.chunk(b": ping\n\n" if how == "keep-alives" else stream[at : at + 1])
                time.sleep(0.02)
        except OSError:
            pass  # the client hung up, as it should

    return script


@pytest.mark.parametrize("how", ["a stream", "a body", "an error", "headers", "keep-alives"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_trickles_is_cut_off_at_the_deadline(serve, dialect, how):
    pieces = getattr(writers(), dialect).text(*["word "] * 100)
    model = talking(serve, dialect, trickled(how, pieces))
    async with asyncio.timeout(4):  # the whole would take six seconds
        result = await Agent(model, limits=Limits(seconds=0.2), retries=0).run("go")
    assert result.stop.reason == "deadline"


# Access tokens and signatures

SECRETS = (
    "ya29.A0ARrdaM-abcdefghijklmnop0123456789",
    "GOCSPX-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_of_a_cloud_is_taken_out(secret):
    assert "[key]" in redact(f"refused: {secret} is no good")
    assert secret not in redact(f"refused: {secret} is no good")


def refusing(token, serve):
    server = serve(lambda peer: peer.answer("200 OK", {}, b"{}"))
    return GoogleModel("gemini-2.5-flash", base_url=server.url, token=token), server


async def test_a_token_function_that_raises_is_told_without_what_it_holds(serve):
    def token():
        raise RuntimeError(f"refresh failed for {SECRETS[0]} with {SECRETS[1]}")

    model, server = refusing(token, serve)
    result = await Agent(model, retries=SOON).run("go")
    assert type(result.error) is AuthenticationFailed
    assert "RuntimeError: refresh failed" in str(result.error)
    told = repr(result.events) + str(result.error)
    assert not any(secret in told for secret in SECRETS)
    assert server.requests == []


class MayPass(Exception):
    retryable = True


@pytest.mark.parametrize("problem", [ConnectionError("no route"), TimeoutError("slow"), MayPass("try again")])
async def test_a_token_function_that_cannot_reach_its_server_is_asked_again(serve, problem):
    asked = []

    def token():
        asked.append(1)
        raise problem

    model, _ = refusing(token, serve)
    result = await Agent(model, retries=SOON).run("go")
    assert (type(result.error), len(asked)) == (ConnectionFailed, 2)


async def test_a_token_that_takes_long_is_not_waited_for_past_the_deadline(serve):
    async def slow():
        await asyncio.sleep(30)
        return "never"

    def blocking():
        time.sleep(1)
        return "late"

    for token in (slow, blocking, lambda: slow()):
        model, server = refusing(token, serve)
        async with asyncio.timeout(5):
            result = await Agent(model, limits=Limits(seconds=0.1), retries=0).run("go")
        assert result.stop.reason == "deadline"
        assert server.requests == []


class Credentials:
    access_key, secret_key, token = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG", "FwoGZXIvYXdzEXAMPLE"

    def get_frozen_credentials(self):
        return self


class Session:
    region_name = "us-east-1"

    def get_credentials(self):
        return Credentials()


SIGNED = [
    (403, "InvalidSignatureException", "Signature expired: 20261122T120000Z is now earlier than …", "clock of this"),
    (403, "InvalidSignatureException", "Signature not yet current: … is still later than …", "clock of this"),
    (403, "SignatureDoesNotMatch", "Credential should be scoped to a valid region, not 'us-east-1'.", "in us-east-1"),
    (403, "ExpiredTokenException", "The security token included in the request is expired", "credentials of AWS"),
    (400, "ExpiredTokenException", f"expired: {Credentials.token}", "credentials of AWS"),
    (400, "UnrecognizedClientException", "invalid", "credentials of AWS"),
    (403, "InvalidSignatureException", f"It should be x-amz-security-token:{Credentials.token}", "[key]"),
    (400, "ServiceQuotaExceededException", "quota", "quota"),
    (400, "ValidationException", "The provided model identifier is invalid.", "model identifier"),
    (503, "ServiceUnavailableException", "busy", "busy"),
]
KINDS = {"ServiceQuotaExceededException": QuotaExceeded, "ValidationException": BadRequest}
KINDS["ServiceUnavailableException"] = Overloaded


@pytest.mark.parametrize(("status", "code", "words", "told"), SIGNED)
async def test_what_bedrock_says_of_a_signature_is_typed_and_tells_no_secret(serve, status, code, words, told):
    pytest.importorskip("botocore")
    sent = {"x-amzn-errortype": f"{code}:http://internal.amazon.com/", "content-type": "application/json"}
    server = serve(lambda peer: peer.answer(f"{status} X", sent, json.dumps({"message": words}).encode()))
    model = BedrockModel("us.amazon.nova-pro-v1:0", region="us-east-1", session=Session(), base_url=server.url[:-3])
    result = await Agent(model, retries=0).run("go")
    assert type(result.error) is KINDS.get(code, AuthenticationFailed)
    assert told in str(result.error)
    shown = repr(result.events) + str(result.error)
    assert not any(one in shown for one in (Credentials.access_key, Credentials.secret_key, Credentials.token))


# Another model in the place of one


@tool
def look(where: str) -> str:
    """Looks."""
    return f"seen {where}"


@pytest.mark.parametrize("second", ["Google", "Converse", "Messages"])
@pytest.mark.parametrize("first", ["Google", "Converse", "Responses"])
async def test_another_dialect_goes_on_where_one_breaks_off(serve, first, second):
    wire = writers()
    calls = getattr(wire, first).calls(("c1", "look", '{"where": "there"}'))

    def one(peer):
        if peer.number == 0:
            return says(first, calls)(peer)
        peer.begin()
        for piece in getattr(wire, first).text("half ", "an answer")[:-2]:
            peer.chunk(piece)
        return peer.reset()

    other = serve(says(second, getattr(wire, second).text("Here it is.")))
    model = FallbackModel(
        [
            talking(serve, first, one),
            getattr(wire, second).model("m", base_url=other.url, api_key="another-made-up-key"),
        ]
    )
    result = await Agent(model, tools=[look], retries=SOON).run("go")
    assert (result.text, [call.result.content for call in result.tool_calls_made]) == ("Here it is.", ["seen there"])
    assert any(isinstance(event, ModelFailed) for event in result.events)
    assert b"seen there" in other.requests[0].body
    assert b"half" not in other.requests[0].body


# The text alone


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_text_of_every_dialect_streams_and_a_call_is_none_of_it(serve, dialect):
    wire = getattr(writers(), dialect)
    turns = [wire.calls(("c1", "look", '{"where": "there"}')), wire.text("Here ", "it ", "is.")]
    agent = Agent(talking(serve, dialect, says(dialect, *turns)), tools=[look], retries=0)
    async with agent.stream("go") as run:
        pieces = [piece async for piece in run.text_stream()]
    assert "".join(pieces) == "Here it is."
    assert len(pieces) >= (1 if dialect == "Responses" else 2)


# One conversation, five providers

PNG = Image(b"\x89PNG\r\n\x1a\n", media_type="image/png")
CODECS = {
    "messages": AnthropicCodec(),
    "chat": ChatCodec("openai-chat", OPENAI),
    "responses": ResponsesCodec(host=OPENAI),
    "google": GoogleCodec(),
    "converse": BedrockCodec("us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
}
MODELS = {"google": "gemini-3-pro-preview", "converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}


def reply_in(dialect, number):
    """What that provider would say: thinking that it signs, two calls."""
    calls = [(f"c{number}a", "look"), (f"c{number}b", "look")]
    match dialect:
        case "messages":
            content = [{"type": "thinking", "thinking": "hm", "signature": f"sign{number}"}]
            content += [{"type": "tool_use", "id": i, "name": n, "input": {"where": "x"}} for i, n in calls]
            return {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": {}}
        case "chat":
            made = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": '{"where": "x"}'}} for i, n in calls
            ]
            message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": made}
            return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        case "responses":
            item = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"sealed{number}"}
            made = [
                {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": '{"where": "x"}'}
                for i, n in calls
            ]
            return {"id": "r", "status": "completed", "output": [item, *made]}
        case "google":
            parts = [{"functionCall": {"name": n, "args": {"where": "x"}}} for _, n in calls]
            parts[0]["thoughtSignature"] = f"sign{number}"
            content = {"role": "model", "parts": [{"text": "hm", "thought": True}, *parts]}
            return {"candidates": [{"content": content, "finishReason": "STOP"}]}
        case _:
            thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": f"sign{number}"}}}
            made = [{"toolUse": {"toolUseId": i, "name": n, "input": {"where": "x"}}} for i, n in calls]
            message = {"role": "assistant", "content": [thought, *made]}
            return {"output": {"message": message}, "stopReason": "tool_use", "usage": {}}


def sent_by(dialect, history):
    body = json.loads(CODECS[dialect].encode(ModelRequest(history), MODELS.get(dialect, "m"), False))
    return body, json.dumps(body)


def pairs_in(dialect, body):
    """The ids of the calls and of the results of a request, in order; places where there are no ids."""
    match dialect:
        case "messages":
            blocks = [block for turn in body["messages"] for block in turn["content"]]
            return ([b["id"] for b in blocks if b["type"] == "tool_use"],
                    [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"])  # fmt: skip
        case "chat":
            calls = [call["id"] for one in body["messages"] for call in one.get("tool_calls") or ()]
            return calls, [one["tool_call_id"] for one in body["messages"] if one["role"] == "tool"]
        case "responses":
            return ([one["call_id"] for one in body["input"] if one.get("type") == "function_call"],
                    [one["call_id"] for one in body["input"] if one.get("type") == "function_call_output"])  # fmt: skip
        case "google":
            parts = [part for turn in body["contents"] for part in turn["parts"]]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            results = [part["functionResponse"] for part in parts if "functionResponse" in part]
            return [one.get("id", one["name"]) for one in calls], [one.get("id", one["name"]) for one in results]
        case _:
            blocks = [block for turn in body["messages"] for block in turn["content"]]
            return ([b["toolUse"]["toolUseId"] for b in blocks if "toolUse" in b],
                    [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b])  # fmt: skip


def test_a_conversation_goes_round_all_providers_and_each_is_sent_what_is_its_own():
    """With thinking that each signs, a result that is an error, one that has an image, ids of all shapes or none."""
    history = [UserMessage("go")]
    said = {}
    for number, dialect in enumerate([*CODECS, *CODECS]):
        body, text = sent_by(dialect, history)
        calls, results = pairs_in(dialect, body)
        assert calls == results, dialect
        assert len(calls) == 2 * number
        own = said.get(dialect)
        if own is not None and dialect not in ("chat",):
            assert own in text, f"{dialect} does not get back what it signed"
        for other, sign in said.items():
            hosts_of_claude = {"messages", "converse"}
            if other != dialect and {other, dialect} != hosts_of_claude and not sign.startswith("hm"):
                assert sign not in text, f"{dialect} is sent what {other} signed"
        last = CODECS[dialect].decode_body(reply_in(dialect, number))[-1]
        assert isinstance(last, ModelReply)
        assert last.finish == "tool_calls"
        said[dialect] = {"chat": "hm", "responses": f"sealed{number}"}.get(dialect, f"sign{number}")
        first, second = last.message.calls
        history += [
            last.message,
            ToolMessage(first.id, "look", (Text("the page did not load"), PNG), is_error=True),
            ToolMessage(second.id, "look", (Text("a picture"), PNG)),
        ]


def test_a_signature_of_a_call_stays_with_it_after_the_conversation_was_elsewhere():
    reply = CODECS["google"].decode_body(reply_in("google", 7))[-1]
    history = [UserMessage("go"), reply.message]
    history += [ToolMessage(call.id, "look", "seen") for call in reply.message.calls]
    history += [AssistantMessage((Thinking("hm", signature="claudes"), ToolCall("toolu_1", "look", '{"where": "y"}')))]
    history += [ToolMessage("toolu_1", "look", "seen")]
    body, text = sent_by("google", history)
    turns = [turn for turn in body["contents"] if turn["role"] == "model"]
    signed = [part.get("thoughtSignature") for part in turns[0]["parts"] if "functionCall" in part]
    assert signed == ["sign7", None]
    assert "claudes" not in text
