"""Bedrock over a real socket: keys and regions, binary streams, runs with tools, what is incomplete, signatures."""

import json
import random
import struct
import zlib
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from treadle import Agent, Limits, Misuse, SqliteJournal, tool
from treadle.kernel.messages import ModelSettings, Usage, UserMessage
from treadle.models import (
    AnthropicModel,
    AuthenticationFailed,
    BedrockModel,
    FallbackModel,
    Overloaded,
    Price,
    ProtocolError,
    RateLimited,
    model_from_name,
)
from treadle.models.port import ModelReply, ModelRequest
from treadle.models.prices import context_window, cost

pytestmark = pytest.mark.anyio

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
KEY = "ABSKQmVkcm9ja0FQSUtleS0wMTIzNDU2Nzg5"
JSON = {"content-type": "application/json"}
AWS = {"content-type": "application/vnd.amazon.eventstream"}
TOLD = {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}
PAY = {"toolUse": {"toolUseId": "tooluse_1", "name": "pay", "input": {"to": "A"}}}
STRANGE = ["malformed_model_output", "malformed_tool_use", "cosmic_ray", "", None]


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def whole(*content: Any, stop: Any = "end_turn", usage: Any = TOLD) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(content)}}, "stopReason": stop, "usage": usage}


def frame(payload: Any, **headers: str) -> bytes:
    named = [(f":{name.replace('_', '-')}".encode(), value.encode()) for name, value in headers.items()]
    head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in named)
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return checked + struct.pack(">I", zlib.crc32(checked))


def event(name: str, **fields: Any) -> bytes:
    return frame(fields | {"p": "abcd"}, event_type=name, content_type="application/json", message_type="event")


def exception(name: str, words: str) -> bytes:
    return frame({"message": words}, exception_type=name, message_type="exception")


def frames(*content: Any, stop: Any = "end_turn", usage: Any = TOLD) -> list[bytes]:
    """A whole reply as a stream."""
    found = [event("messageStart", role="assistant")]
    for place, block in enumerate(content):
        if "toolUse" in block:
            start = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            found.append(event("contentBlockStart", contentBlockIndex=place, start={"toolUse": start}))
            deltas: list[Any] = [{"toolUse": {"input": json.dumps(block["toolUse"]["input"])}}]
        else:
            deltas = [{"text": piece} for piece in block["text"]]
        found += [event("contentBlockDelta", contentBlockIndex=place, delta=delta) for delta in deltas]
        found.append(event("contentBlockStop", contentBlockIndex=place))
    return [*found, event("messageStop", stopReason=stop), event("metadata", usage=usage, metrics={"latencyMs": 1})]


def answering(*replies: Any, seed: int | None = None):
    """Answers with each reply in turn, the last for ever: a dict whole, frames as a stream cut anywhere."""

    def answer(peer: Any) -> None:
        reply = replies[min(peer.number, len(replies) - 1)]
        if isinstance(reply, tuple):
            status, headers, body = reply
            peer.answer(status, JSON | headers, json.dumps(body).encode())
        elif isinstance(reply, dict):
            peer.answer("200 OK", JSON | {"x-amzn-requestid": "r1"}, json.dumps(reply).encode())
        else:
            peer.begin(**AWS, x_amzn_requestid="r1")
            body, chance = b"".join(reply), random.Random(seed)
            cuts = sorted(chance.sample(range(1, len(body)), 0 if seed is None else min(30, len(body) - 1)))
            for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True):
                peer.chunk(body[a:b])
            peer.end()

    return answer


def served(server: Any, model: str = CLAUDE, **options: Any) -> BedrockModel:
    return BedrockModel(model, base_url=server.url.removesuffix("/v1"), **{"api_key": KEY} | options)


async def reply_of(model: Any, *messages: Any) -> ModelReply:
    last = [one async for one in model.stream(ModelRequest(messages or (UserMessage("hello"),)))][-1]
    assert isinstance(last, ModelReply)
    return last


class Total(BaseModel):
    amount: int


def paying(paid: list[str]) -> Any:
    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


# Runs


@pytest.mark.parametrize("seed", [None, 0, 1])
async def test_a_run_with_a_tool(serve, seed):
    paid: list[str] = []
    server = serve(answering(frames({"text": "I pay."}, PAY, stop="tool_use"), frames({"text": "Dône."}), seed=seed))
    model = served(server, price=Price(1, 1))
    result = await Agent(model, instructions="Pay.", tools=[paying(paid)]).run("pay A")
    assert (result.text, paid, result.usage) == ("Dône.", ["A"], Usage(14, 4))
    assert result.cost == Decimal("0.000018")
    first, second = server.requests
    assert first.path == f"/model/{CLAUDE.replace(':', '%3A')}/converse-stream"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert "application/vnd.amazon.eventstream" in first.headers["accept"]
    said = json.loads(second.body)["messages"]
    assert said[1]["content"][1] == PAY
    assert said[2]["content"][0]["toolResult"] == {"toolUseId": "tooluse_1", "content": [{"text": "paid"}]}


async def test_a_run_without_streaming(serve):
    paid: list[str] = []
    server = serve(answering(whole(PAY, stop="tool_use"), whole({"text": "Done."})))
    result = await Agent(served(server, streaming=False), tools=[paying(paid)]).run("pay A")
    assert (result.text, paid, result.usage) == ("Done.", ["A"], Usage(14, 4))
    assert server.requests[0].path.endswith("/converse")
    assert (await reply_of(served(server, streaming=False))).request_id == "r1"


async def test_a_typed_answer_comes_by_a_final_tool(serve):
    final = {"toolUse": {"toolUseId": "t", "name": "final_answer", "input": {"amount": 42}}}
    server = serve(answering(frames(final, stop="tool_use")))
    result = await Agent(served(server), output=Total).run("How much?")
    assert result.output == Total(amount=42)
    assert "outputConfig" not in json.loads(server.requests[0].body)


async def test_frames_are_known_whatever_they_are_said_to_be(serve):
    def answer(peer: Any) -> None:
        peer.answer("200 OK", {"content-type": "application/octet-stream"}, b"".join(frames({"text": "Done."})))

    assert (await reply_of(served(serve(answer)))).message.text == "Done."


async def test_a_body_that_is_said_to_be_frames_and_is_none_is_read_as_what_it_is(serve):
    def answer(peer: Any) -> None:
        body = whole({"text": "Done."}) if peer.number else {"message": "slow down", "__type": "ThrottlingException"}
        peer.answer("200 OK", AWS, json.dumps(body).encode())

    model = served(serve(answer))
    with pytest.raises(RateLimited, match="slow down"):
        await reply_of(model)
    assert (await reply_of(model)).message.text == "Done."


async def test_a_server_that_answers_a_stream_with_one_body_is_read(serve):
    assert (await reply_of(served(serve(answering(whole({"text": "Done."})))))).message.text == "Done."


async def test_a_run_that_waited_for_a_person_sends_back_what_the_model_had_thought(serve, tmp_path):
    signed = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s=="}}}
    redacted = {"reasoningContent": {"redactedContent": "RXU4RQ=="}}
    server = serve(answering(whole(signed, redacted, PAY, stop="tool_use"), whole({"text": "Done."})))

    @tool(effect="write", needs_approval=True)
    def pay(to: str) -> str:
        """Pays."""
        return "paid"

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        waiting = await Agent(served(server), tools=[pay], journal=journal).run("pay A")
        (pending,) = waiting.pending
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(served(server), tools=[pay], journal=journal)
        result = await agent.resume(waiting.run_id, approve=[pending.key])
    assert result.text == "Done."
    assert json.loads(server.requests[1].body)["messages"][1]["content"] == [signed, redacted, PAY]


# What is incomplete


@pytest.mark.parametrize("word", STRANGE)
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("said", [PAY, {"text": "Half of"}])
async def test_a_stop_reason_that_nobody_knows_carries_nothing_out(serve, word, streamed, said):
    paid: list[str] = []
    body = frames(said, stop=word) if streamed else whole(said, stop=word)
    model = served(serve(answering(body)), streaming=streamed, price=Price(1, 1))
    result = await Agent(model, tools=[paying(paid)], retries=0).run("pay A")
    assert paid == []
    assert (result.stop.reason, result.finished) == ("model_error", False)
    assert (f"'{word}'" if word else "no word for why") in result.stop.detail
    assert result.usage == Usage(7, 2)
    assert result.cost == Decimal("0.000009")


@pytest.mark.parametrize("word", ["max_tokens", "model_context_window_exceeded"])
async def test_a_reply_that_was_cut_off_runs_nothing(serve, word):
    paid: list[str] = []
    result = await Agent(served(serve(answering(frames(PAY, stop=word)))), tools=[paying(paid)], retries=0).run("pay A")
    assert paid == []
    assert not result.finished


@pytest.mark.parametrize("word", ["guardrail_intervened", "content_filtered"])
@pytest.mark.parametrize("streamed", [True, False])
async def test_what_a_guardrail_stopped_is_no_answer_and_runs_nothing(serve, word, streamed):
    paid: list[str] = []
    blocked = {"text": "Sorry, the model cannot answer this question."}
    body = frames(blocked, PAY, stop=word) if streamed else whole(blocked, PAY, stop=word)
    result = await Agent(served(serve(answering(body)), streaming=streamed), tools=[paying(paid)]).run("pay A")
    assert paid == []
    assert (result.stop.reason, result.finished) == ("content_filter", False)
    assert result.text == blocked["text"]


async def test_a_cut_stream_is_asked_for_again_and_pays_once(serve):
    paid: list[str] = []
    cut = b"".join(frames(PAY, stop="tool_use"))[:-300]
    server = serve(answering([cut], frames(PAY, stop="tool_use"), frames({"text": "Done."})))
    result = await Agent(served(server), tools=[paying(paid)]).run("pay A")
    assert (result.text, paid) == ("Done.", ["A"])
    assert len(server.requests) == 3


async def test_a_flipped_bit_is_an_error(serve):
    chance, good = random.Random(0), b"".join(frames({"text": "Done."}))
    broken = []
    for _ in range(40):
        body = bytearray(good)
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        broken.append([bytes(body)])
    server = serve(answering(*broken))
    for _ in broken:
        with pytest.raises(ProtocolError):
            await reply_of(served(server))


# Errors


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (exception("throttlingException", "Too many tokens, please wait"), RateLimited),
        (exception("modelStreamErrorException", "it broke"), Overloaded),
        (frame({}, message_type="error", error_code="InternalError", error_message="it broke"), Overloaded),
        (frames({"text": "x"})[0][:-5], ProtocolError),
        (b"", ProtocolError),
    ],
)
async def test_what_goes_wrong_inside_a_stream_is_its_typed_error(serve, last, kind):
    server = serve(answering([*frames({"text": "Half"})[:3], last]))
    with pytest.raises(kind):
        await reply_of(served(server))


async def test_usage_that_was_told_before_an_error_counts(serve):
    body = [*frames({"text": "Half"})[:3], event("metadata", usage=TOLD), exception("modelStreamErrorException", "no")]
    result = await Agent(served(serve(answering(body))), retries=0).run("go")
    assert type(result.error) is Overloaded
    assert result.usage == Usage(7, 2)


async def test_a_throttled_call_is_made_again(serve):
    busy = (
        "429 Too Many Requests",
        {"x-amzn-errortype": "ThrottlingException:http://x/"},
        {"message": "Too many tokens"},
    )
    server = serve(answering(busy, frames({"text": "Done."})))
    result = await Agent(served(server)).run("go")
    assert result.text == "Done."
    assert len(server.requests) == 2


async def test_a_refused_key_is_not_repeated_and_its_place_is_told(serve, monkeypatch):
    refused = ("403 Forbidden", {"x-amzn-errortype": "AccessDeniedException"}, {"Message": f"API Key {KEY} is wrong"})
    server = serve(answering(refused))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url.removesuffix("/v1"))
    with pytest.raises(AuthenticationFailed, match="Check the key in AWS_BEARER_TOKEN_BEDROCK") as told:
        await reply_of(model_from_name(f"bedrock:{CLAUDE}"))
    assert KEY not in str(told.value)


async def test_a_conversation_moves_to_bedrock_where_anthropic_fails(serve):
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
    call = {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"to": "A"}}
    said = {"type": "message", "id": "m", "model": "x", "content": [thought, call], "stop_reason": "tool_use"}
    down = ("503 Service Unavailable", {}, {"error": {"message": "down"}})
    first, second = serve(answering(said, down)), serve(answering(frames({"text": "Done."})))
    paid: list[str] = []
    claude = AnthropicModel("claude-sonnet-4-5", base_url=first.url.removesuffix("/v1"), api_key="k")
    result = await Agent(FallbackModel([claude, served(second)]), tools=[paying(paid)]).run("pay A")
    assert (result.text, paid) == ("Done.", ["A"])
    sent = json.loads(second.requests[0].body)["messages"][1]["content"]
    assert sent[0] == {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig=="}}}
    assert sent[1]["toolUse"]["toolUseId"] == "toolu_1"


# Names, regions, keys


def test_the_region_is_in_the_address(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    with pytest.raises(Misuse, match="no region is known for Bedrock: give region="):
        model_from_name(f"bedrock:{CLAUDE}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert "https://bedrock-runtime.eu-west-1.amazonaws.com" in repr(model_from_name(f"bedrock:{CLAUDE}"))
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert "bedrock-runtime.us-west-2." in repr(BedrockModel(CLAUDE))
    arn = "arn:aws:bedrock:ap-south-1:123456789012:application-inference-profile/abc"
    assert "bedrock-runtime.ap-south-1." in repr(BedrockModel(arn))
    assert "bedrock-runtime.ap-south-1." in repr(BedrockModel(CLAUDE, profile=arn))
    assert "bedrock-runtime.us-east-1." in repr(BedrockModel(arn, region="us-east-1"))
    assert "bedrock-runtime.cn-north-1.amazonaws.com.cn'" in repr(BedrockModel(CLAUDE, region="cn-north-1"))
    assert KEY not in repr(BedrockModel(CLAUDE))
    assert model_from_name(f"bedrock:{CLAUDE}").name == f"bedrock:{CLAUDE}"


@pytest.mark.parametrize("region", ["x", "evil.com/#", "us-east-1.evil.com", "us east 1", "US-EAST-1", "../x-y-1"])
def test_a_region_that_is_none_is_refused(region):
    with pytest.raises(Misuse, match="a region of AWS is called like us-east-1"):
        BedrockModel(CLAUDE, region=region, api_key=KEY)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": "1d"}, "cache as one of '5m', '1h'"),
        ({"client": object()}, "takes session= .* and no client="),
        ({"session": "default"}, "as a Session of botocore or boto3"),
        ({"model": ".."}, "give its id or its ARN"),
        ({"model": "us.amazon.nova-pro-v1:0", "cache": "1h"}, "only of Claude's from 4.5 on"),
        ({"model": "anthropic.claude-3-7-sonnet-20250219-v1:0", "cache": "1h"}, "only of Claude's from 4.5 on"),
        ({"session": type("S", (), {"get_credentials": None})()}, "either api_key= or session="),
        ({"model": ""}, "its name as a text"),
        (
            {"settings": ModelSettings(extra={"inferenceConfig": {"maxTokens": 5}})},
            r"give ModelSettings\(max_tokens=…\)",
        ),
        ({"region": 5}, "region as a text"),
        ({"region": ""}, "region as a text"),
        ({"profile": 5}, "profile as a text"),
        ({"timeout": 5}, "a model has no option timeout"),
    ],
)
def test_options_are_refused_where_they_are_given(options, words):
    with pytest.raises(Misuse, match=words):
        BedrockModel(**{"model": CLAUDE, "region": "us-east-1", "api_key": KEY} | options)


async def test_the_key_of_the_environment_goes_to_no_other_server(serve, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    server = serve(answering(frames({"text": "Done."})))
    await reply_of(BedrockModel(CLAUDE, base_url=server.url.removesuffix("/v1")))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "name",
    [
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5",
        "../../admin?x=1#y",
        "a b%2fc\r\nx-evil: 1",
        "m\u00f6del/\u202e",
        "\ud800",
    ],
)
async def test_a_name_never_changes_where_a_request_goes(serve, name):
    server = serve(answering(frames({"text": "Done."})))
    await reply_of(served(server, name, region="us-east-1"))
    (peer,) = server.requests
    begin, sent, last = peer.path.rsplit("/", 2)
    assert (begin, last) == ("/model", "converse-stream")
    assert "x-evil" not in peer.headers
    assert set(sent).isdisjoint("/?#: \r\n")


async def test_an_inference_profile_is_called_in_the_models_place(serve):
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    server = serve(answering(frames({"text": "Done."})))
    model = served(server, profile=arn)
    await reply_of(model)
    assert server.requests[0].path == "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabc/converse-stream"  # fmt: skip # noqa: E501
    assert model.name == f"bedrock:{CLAUDE}"
    assert json.loads(server.requests[0].body)["inferenceConfig"] == {"maxTokens": 16_000}


def test_prices_and_windows_come_from_the_table():
    model = BedrockModel(CLAUDE, region="eu-west-1", api_key=KEY)
    plain = model.cost(Usage(1_000_000, 0))
    assert plain is not None
    assert plain > 1
    assert model.profile.context_window == 200_000
    assert plain == cost(f"bedrock:{CLAUDE}", Usage(1_000_000, 0))
    assert context_window(f"bedrock:{CLAUDE}") == 200_000
    arn = f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{CLAUDE}"
    assert BedrockModel(arn, api_key=KEY).cost(Usage(1_000_000, 0)) == plain
    foundation = "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert BedrockModel(foundation, api_key=KEY).profile.context_window == 200_000
    unknown = BedrockModel("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", api_key=KEY)
    assert unknown.cost(Usage(1)) is None


def test_on_what_terms_a_request_is_billed():
    model = BedrockModel(CLAUDE, region="eu-west-1", api_key=KEY, cache="1h")
    assert model.terms(ModelSettings()).hour
    fields = {"serviceTier": {"type": "priority"}, "performanceConfig": {"latency": "optimized"}}
    assert model.terms(ModelSettings(extra=fields)).services == ("", "priority", "optimized")
    own = {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}
    assert model.terms(ModelSettings(extra=own)).endless == "systemTool"
    assert model.terms(ModelSettings(extra={"promptVariables": {"x": {"text": "y"}}})).endless == "a stored prompt"


async def test_a_limit_in_dollars_is_kept(serve):
    server = serve(answering(frames(PAY, stop="tool_use")))
    paid: list[str] = []
    model = served(server, price=Price(100_000, 100_000), settings=ModelSettings(max_tokens=100))
    result = await Agent(model, tools=[paying(paid)], limits=Limits(usd=1)).run("pay A")
    assert result.stop.reason == "max_cost"
    assert result.cost is not None
    assert result.cost <= 1
