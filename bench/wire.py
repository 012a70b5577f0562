"""What the wire costs: CPU to send a request and to read a streamed reply, against the official SDKs.

    python bench/wire.py            # all of it, as tables
    python bench/wire.py decode     # one of: decode, request, steps

Both sides go through httpx2 with a transport in memory: no network, the same bytes in the same chunks, one process,
turn about, so that a slow spell of the machine falls on both; what counts is the ratio. treadle's reply is the whole
message, so the fair peer is the SDK's own accumulation; its bare events are shown beside it. The SDKs are given dicts
that are ready to send; treadle makes its bodies out of messages. Google's is measured where `google-genai` is
installed; it has no accumulation of its own, so the pieces of its text are joined.

To reach: at most a third of the SDKs' CPU, and steps that do not grow with the history.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import anthropic
import httpx2
import openai

try:
    from google import genai
except ImportError:
    genai = None

from treadle.kernel.log import Log
from treadle.kernel.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models import GoogleModel, ModelReply, ModelRequest
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.transport import HttpReply

DELTAS = 5000
STEPS = 500
CHUNK = 4096
URL = "http://memory.invalid/v1"
TOOLS = (ToolSpec("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}}),)
HELLO = {"role": "user", "content": "hello"}
Work = Callable[[], Awaitable[Any]]


class Memory:
    """A transport for treadle over a client in memory: what `HttpTransport` does, without its pool."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def post(self, path: str, body: Any, stream: bool, error: Any) -> HttpReply:
        request = self._client.build_request("POST", URL + path, content=body)
        return HttpReply(URL, await self._client.send(request, stream=True), error)


def client_of(body: bytes) -> httpx2.AsyncClient:
    """A client that is answered with `body`, in chunks, whatever it asks."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), CHUNK):
            yield body[start : start + CHUNK]

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=chunks())

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def sse(events: Sequence[dict[str, Any]], *, named: bool, done: bool = False) -> bytes:
    lines = [f"event: {event['type']}\n" if named else "" for event in events]
    text = "".join(f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True))
    return (text + ("data: [DONE]\n\n" if done else "")).encode()


def anthropic_stream(deltas: int) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "some "}}
    return sse(
        [
            {"type": "message_start", "message": message | {"stop_sequence": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *[delta] * deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ],
        named=True,
    )


def chat_stream(deltas: int) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = head | {"choices": [{"index": 0, "delta": {"content": "some "}, "finish_reason": None}]}
    last = head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = head | {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}}
    return sse([*[delta] * deltas, last, usage], named=False, done=True)


def responses_stream(deltas: int) -> bytes:
    response: dict[str, Any] = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "in_progress",
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    item = {"id": "i", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "some " * deltas, "annotations": []}
    at = {"item_id": "i", "output_index": 0, "content_index": 0}
    delta = {"type": "response.output_text.delta", **at, "delta": "some ", "logprobs": []}
    usage = {"input_tokens": 10, "output_tokens": 9, "total_tokens": 19}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = item | {"status": "completed", "content": [part]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **at, "part": part | {"text": ""}},
        *[delta] * deltas,
        {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {
            "type": "response.completed",
            "response": response | {"status": "completed", "output": [whole], "usage": usage},
        },
    ]
    return sse([event | {"sequence_number": i} for i, event in enumerate(events)], named=True)


def google_stream(deltas: int) -> bytes:
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 9, "totalTokenCount": 19}
    counts |= {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}]}
    delta: dict[str, Any] = {"content": {"parts": [{"text": "some "}], "role": "model"}, "index": 0}
    chunk = {"usageMetadata": counts, "modelVersion": "gemini-2.5-flash", "responseId": "r"}
    last = chunk | {"candidates": [delta | {"finishReason": "STOP"}]}
    return sse([*[{"candidates": [delta], **chunk}] * deltas, last], named=False)


def model_of(dialect: str, client: httpx2.AsyncClient) -> HttpModel:
    kinds: dict[str, Any] = {"anthropic": AnthropicModel, "chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
    kinds |= {"google": GoogleModel}
    model: HttpModel = kinds[dialect]("m", base_url=URL, api_key="test")
    model._transport = Memory(client)
    return model


def sdk_calls(dialect: str, client: httpx2.AsyncClient, history: list[Any]) -> dict[str, Work]:
    """What the official SDK does with the same request: bare events, and accumulated to a whole reply."""
    options: dict[str, Any] = {"base_url": URL, "api_key": "test", "http_client": client, "max_retries": 0}
    if dialect == "anthropic":
        claude = anthropic.AsyncAnthropic(**options)
        asked: dict[str, Any] = {"model": "m", "max_tokens": 1000, "messages": history}

        async def bare() -> None:
            async for _ in await claude.messages.create(**asked, stream=True):
                pass

        async def whole() -> Any:
            async with claude.messages.stream(**asked) as stream:
                return await stream.get_final_message()
    elif dialect == "chat":
        chat = openai.AsyncOpenAI(**options)

        async def bare() -> None:
            async for _ in await chat.chat.completions.create(model="m", messages=history, stream=True):
                pass

        async def whole() -> Any:
            async with chat.chat.completions.stream(model="m", messages=history) as stream:
                return await stream.get_final_completion()
    elif dialect == "google":
        gemini = genai.Client(api_key="test", http_options={"base_url": URL, "httpx_async_client": client})

        async def bare() -> None:
            async for _ in await gemini.aio.models.generate_content_stream(model="m", contents=history):
                pass

        async def whole() -> Any:
            pieces = []
            async for chunk in await gemini.aio.models.generate_content_stream(model="m", contents=history):
                pieces += [part.text for part in chunk.candidates[0].content.parts]
            return "".join(pieces)
    else:
        gpt = openai.AsyncOpenAI(**options)

        async def bare() -> None:
            async for _ in await gpt.responses.create(model="m", input=history, stream=True):
                pass

        async def whole() -> Any:
            async with gpt.responses.stream(model="m", input=history) as stream:
                return await stream.get_final_response()

    return {"SDK events": bare, "SDK whole": whole}


STREAMS = {"anthropic": anthropic_stream, "chat": chat_stream, "responses": responses_stream}
if genai is not None:
    STREAMS["google"] = google_stream


async def least(works: dict[str, Work], rounds: int) -> dict[str, float]:
    """CPU milliseconds of each piece of work, the least of `rounds` goes, turn about."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            start = time.process_time()
            await work()
            best[name] = min(best[name], (time.process_time() - start) * 1e3)
    return best


def asking(model: HttpModel, request: ModelRequest) -> Work:
    async def work() -> None:
        replied = False
        async for event in model.stream(request):
            replied = isinstance(event, ModelReply)
        assert replied

    return work


def table(title: str, rows: dict[str, dict[str, float]], ratios: Sequence[tuple[str, str]]) -> None:
    names = list(next(iter(rows.values())))
    heads = [*names, *["ratio" if len(ratios) == 1 else f"{one} / {other}" for one, other in ratios]]
    print(f"\n{title}\n  {'':10}" + "".join(f"{head:>{max(10, len(head) + 3)}}" for head in heads))
    for label, times in rows.items():
        values = [times[name] for name in names] + [times[one] / times[other] for one, other in ratios]
        print(
            f"  {label:10}" + "".join(f"{v:{max(10, len(head) + 3)}.2f}" for v, head in zip(values, heads, strict=True))
        )


async def decode(rounds: int = 7) -> None:
    """A reply of 5,000 deltas, from the bytes to the whole message."""
    rows = {}
    for dialect, stream in STREAMS.items():
        client = client_of(stream(DELTAS))
        ask = ModelRequest([UserMessage("hello")])
        asked = {"role": "user", "parts": [{"text": "hello"}]} if dialect == "google" else HELLO
        peers = sdk_calls(dialect, client, [asked])
        rows[dialect] = await least({"ours": asking(model_of(dialect, client), ask), **peers}, rounds)
    table(f"CPU to read a stream of {DELTAS} deltas (ms)", rows, [("ours", "SDK events"), ("ours", "SDK whole")])


def history(steps: int) -> list[Message]:
    """A run of `steps` steps: a call of a tool and its result each."""
    messages: list[Message] = [SystemMessage("Be brief."), UserMessage("Add up the numbers of each month.")]
    for i in range(steps):
        call = ToolCall(f"call_{i}", "add", f'{{"a": {i}, "b": 1}}')
        messages.append(AssistantMessage((Text(f"Now the numbers of month {i}, which are next."), call)))
        messages.append(ToolMessage(call.id, "add", f'{{"sum": {i + 1}, "rows": [{i}, {i}, {i}, {i}, {i}, {i}]}}'))
    return messages


async def request(rounds: int = 7) -> None:
    """The request of step 500 and the shortest reply: with the history kept from step 499, and with nothing kept."""
    rows: dict[str, dict[str, float]] = {}
    messages = history(STEPS)
    for dialect, stream in STREAMS.items():
        client = client_of(stream(1))
        model = model_of(dialect, client)
        body = json.loads(model.codec.encode(ModelRequest(messages), "m", True))
        sent = body.get("messages") or body.get("input") or body["contents"]
        before, now = ModelRequest(messages[:-2], run_id="r"), ModelRequest(messages, run_id="r")
        sdk = sdk_calls(dialect, client, sent)["SDK events"]
        rows[dialect] = {}
        for _ in range(rounds):
            await asking(model, before)()
            works = {"next step": asking(model, now), "afresh": asking(model_of(dialect, client), now), "SDK": sdk}
            found = await least(works, 1)
            rows[dialect] = {name: min(rows[dialect].get(name, value), value) for name, value in found.items()}
    title = f"CPU of a request with a history of {STEPS} steps and a reply of one delta (ms)"
    table(title, rows, [("next step", "SDK"), ("afresh", "SDK")])


async def steps(rounds: int = 5) -> None:
    """The body of each step of a run, made of messages; beside it, what copying its bytes takes."""
    marks = (10, 50, 100, 200, 300, 400, STEPS)
    print(f"\nCPU per step to make the body, over a run of {STEPS} steps (us; mean of the 10 steps up to each)")
    print(f"  {'step':20}" + "".join(f"{mark:8d}" for mark in marks))
    for dialect in STREAMS:
        made = {mark: float("inf") for mark in marks}
        copied = {mark: float("inf") for mark in marks}
        for _ in range(rounds):
            codec = model_of(dialect, client_of(b"")).codec
            log: Log[Message] = Log(history(0))
            later = history(STEPS)[2:]
            encode_times, copy_times = [], []
            gc.collect()
            for i in range(STEPS):
                log = log.append(*later[2 * i : 2 * i + 2])
                start = time.perf_counter()
                body = codec.encode(ModelRequest(log, TOOLS, run_id="r", step=i), "m", True)
                middle = time.perf_counter()
                bytearray(body)
                encode_times.append(middle - start)
                copy_times.append(time.perf_counter() - middle)
            for mark in marks:
                made[mark] = min(made[mark], sum(encode_times[mark - 10 : mark]) / 10 * 1e6)
                copied[mark] = min(copied[mark], sum(copy_times[mark - 10 : mark]) / 10 * 1e6)
        print(f"  {dialect + ', body':20}" + "".join(f"{made[mark]:8.1f}" for mark in marks))
        print(f"  {dialect + ', a copy':20}" + "".join(f"{copied[mark]:8.1f}" for mark in marks))


def main() -> None:
    """Runs what is named, else all."""
    print(f"anthropic {anthropic.__version__}, openai {openai.__version__}, httpx2 {httpx2.__version__}")
    works = {"decode": decode, "request": request, "steps": steps}
    for name in sys.argv[1:] or works:
        asyncio.run(works[name]())


if __name__ == "__main__":
    main()
