"""The server that the pages about models talk to: it plays back what providers were recorded to say.

It stands on loopback in place of Anthropic, OpenAI, Ollama and a server of one's own, and speaks the three dialects. A
question that the recordings hold (they are kept outside the repository) gets its recorded reply; any other, or all of
them where there are no recordings, a reply in the same form that is made here. It also refuses strange keys and models,
is busy when first asked one question, and breaks off its first reply to another.
"""

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from needs import need
from postgres_server import Server

sys.path.append(str(Path(__file__).parent))

Json = dict[str, Any]

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"

KEY = "a-key-of-the-tests"
PATHS = {"messages": "anthropic_messages", "completions": "openai_chat", "responses": "openai_responses"}
GEMINI = ("generateContent", "streamGenerateContent")
CONVERSE = ("converse", "converse-stream")
MISTYPED = "claude-sonet-4-5"
BUSY_AT_FIRST = "What is 2+2?"
BREAKS_OFF_AT_FIRST = "How do I cross the street?"
READS_THE_CACHE = "Can you summarize that in one sentence?"
TEXTS = {
    "What is the capital of France?": "The capital of France is Paris.",
    BUSY_AT_FIRST: "2 + 2 = 4.",
    BREAKS_OFF_AT_FIRST: "Look left, look right, look left again, and cross the street when nothing comes.",
    "What's the weather in Paris?": "It is sunny in Paris.",
}


@pytest.fixture
def replay() -> Iterator[Callable[[str], dict[str, str]]]:
    """Starts a server, for replies "recorded" or "made"; gives the environment in which models are found there."""
    with ExitStack() as stack:

        def start(replies: str) -> dict[str, str]:
            if replies == "recorded" and not RECORDINGS.is_dir():
                pytest.skip(f"the recordings are kept outside the repository and are not at {RECORDINGS}")
            address = stack.enter_context(replaying(RECORDINGS if replies == "recorded" else None))
            return {
                "ANTHROPIC_BASE_URL": f"http://{address}",
                "ANTHROPIC_API_KEY": KEY,
                "OPENAI_BASE_URL": f"http://{address}/v1",
                "OPENAI_API_KEY": KEY,
                "GOOGLE_GEMINI_BASE_URL": f"http://{address}",
                "GEMINI_API_KEY": KEY,
                "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"http://{address}",
                "AWS_BEARER_TOKEN_BEDROCK": KEY,
                "OLLAMA_HOST": address,
                "LOCAL_SERVER": address,
            }

        yield start


@pytest.fixture
def database(server: Server) -> str:
    """The address of a database, for pages that keep runs and orders in PostgreSQL."""
    need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
    return f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres"


class Asked(NamedTuple):
    """What a request asks for."""

    dialect: str
    model: str
    text: str
    turns: int
    """Assistant turns since the text was said: 0 for a first step, 1 once tools have answered."""
    tools: frozenset[str]
    stream: bool

    @classmethod
    def by(cls, dialect: str, body: Json) -> "Asked":
        said = body.get("messages") or body.get("input") or _contents(body)
        if isinstance(said, str):
            said = [{"role": "user", "content": said}]
        text, turns = "", 0
        for item in said:
            if item.get("role") == "user" and (words := _words(item["content"])):
                text, turns = words, 0
            elif item.get("role") == "assistant" or item.get("type") == "function_call":
                turns = 1
        listed = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", [tool])]
        tools = frozenset(map(_tool_name, listed))
        return cls(dialect, body.get("model", ""), text, turns, tools, bool(body.get("stream")))


class Reply(NamedTuple):
    """A status and a body: the text of a stream, or an object."""

    status: int
    body: str | Json
    headers: dict[str, str] = {}


class Replies:
    """What the server says to each request."""

    def __init__(self, recordings: Path | None) -> None:
        self._recorded: list[tuple[Asked, Reply]] = []
        self._first: set[str] = set()
        for dialect in PATHS.values() if recordings else ():
            with gzip.open(recordings / f"{dialect}.jsonl.gz", "rt", encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    if isinstance(row["request"], dict) and _is_plain(row["request"]):
                        reply = Reply(row["status"], row["response"])
                        self._recorded.append((Asked.by(dialect, row["request"]), reply))

    def to(self, asked: Asked, key: str) -> Reply:
        """The reply to one request."""
        if key not in ("", KEY):
            return _refusal(401, "authentication_error", "invalid x-api-key")
        if asked.text == BUSY_AT_FIRST and asked.text not in self._first:
            self._first.add(asked.text)
            busy = _refusal(429, "rate_limit_error", "This request would exceed your rate limit.")
            return busy._replace(headers={"retry-after": "1"})
        return self._recorded_reply(asked) or _made(asked)

    def breaks_off(self, asked: Asked) -> bool:
        """Whether this reply stops in the middle."""
        first = asked.text == BREAKS_OFF_AT_FIRST and asked.text not in self._first
        self._first.add(asked.text)
        return first

    def _recorded_reply(self, asked: Asked) -> Reply | None:
        """What was said to the same words in the same dialect, best by the same model and in the same way."""
        same = [
            (recorded, reply)
            for recorded, reply in self._recorded
            if (recorded.dialect, recorded.turns) == (asked.dialect, asked.turns)
            and recorded.text.endswith(asked.text)
            and (recorded.model == asked.model or (_is_reply(reply) and asked.model != MISTYPED))
            and _shows(asked.text, reply)
            and _called(reply) <= asked.tools
            and bool(asked.tools) == bool(recorded.tools)
        ]
        best = max(same, key=lambda one: (one[0].model == asked.model, one[0].stream == asked.stream), default=None)
        return None if best is None else best[1]


@contextmanager
def replaying(recordings: Path | None) -> Iterator[str]:
    """The address ("127.0.0.1:12345") of a server that plays back `recordings`, or only what is made here."""
    replies = Replies(recordings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            name, _, method = self.path.partition("?")[0].rpartition("/")[2].partition(":")
            body = body | {"model": name} if method in GEMINI else body
            if name in CONVERSE:
                asked = Asked.by("bedrock_converse", _conversed(body))
            else:
                asked = Asked.by("google_generate" if method in GEMINI else PATHS[name], body)
            own = self.headers["x-api-key"] or self.headers["x-goog-api-key"]
            key = own or (self.headers["authorization"] or "").removeprefix("Bearer ")
            reply = replies.to(asked, key)
            streamed = isinstance(reply.body, str)
            data = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if replies.breaks_off(asked):
                data, self.close_connection = data[: len(data) // 2], True
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _contents(body: Json) -> list[Json]:
    """The turns of a request to Gemini, as the other dialects have them."""
    roles = {"user": "user", "model": "assistant"}
    return [
        {"role": roles[turn["role"]], "content": [{"type": "text", **part} for part in turn["parts"]]}
        for turn in body.get("contents") or ()
    ]


def _conversed(body: Json) -> Json:
    """A request to Bedrock, as the other dialects have it."""
    turns = [
        {"role": turn["role"], "content": [{"type": "text", **part} for part in turn["content"] if "text" in part]}
        for turn in body["messages"]
    ]
    tools = [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    return {"messages": turns, "tools": tools}


def _words(content: Any) -> str:
    """What a user said in words; empty for results of tools and the like."""
    if isinstance(content, str):
        return content.strip()
    parts = [part.get("text") or "" for part in content if part.get("type") in ("text", "input_text")]
    return " ".join(parts).strip()


def _tool_name(tool: Json) -> str:
    return str(tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type"))


def _is_plain(request: Json) -> bool:
    """Whether a request has no instructions and no form that its answer must have."""
    said = request.get("messages") or request.get("input") or ()
    told = any(isinstance(item, dict) and item.get("role") in ("system", "developer") for item in said)
    return not told and not any(request.get(name) for name in ("system", "instructions", "response_format", "text"))


def _is_reply(reply: Reply) -> bool:
    fields = {"content", "output", "choices"}
    return reply.status == 200 and (isinstance(reply.body, str) or not fields.isdisjoint(reply.body))


def _shows(text: str, reply: Reply) -> bool:
    """Whether a reply to `text` has what a page shows with it: text to be broken off, or tokens from the cache."""
    if text == BREAKS_OFF_AT_FIRST:
        return isinstance(reply.body, str) and "thinking" not in reply.body
    if text == READS_THE_CACHE:
        return bool(re.search(r'"cache_read_input_tokens": ?[1-9]', json.dumps(reply.body)))
    return True


def _called(reply: Reply) -> set[str]:
    """The names of the tools that a whole body calls."""
    if isinstance(reply.body, str):
        return {"a stream"} if '"tool_use"' in reply.body or '"tool_calls"' in reply.body else set()
    items = [*(reply.body.get("content") or ()), *(reply.body.get("output") or ())]
    for choice in reply.body.get("choices") or ():
        items += [{"type": "tool_use"} | call["function"] for call in choice["message"].get("tool_calls") or ()]
    return {item["name"] for item in items if item.get("type") in ("tool_use", "function_call")}


def _refusal(status: int, kind: str, words: str) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_011CS"}
    return Reply(status, body, {"request-id": "req_011CS"})


def _made(asked: Asked) -> Reply:
    """A reply in the form of the dialect that was not recorded."""
    if asked.model == MISTYPED:
        return _refusal(404, "not_found_error", f"model: {asked.model}")
    text = TEXTS.get(asked.text, "Yes.")
    call = "get_weather" in asked.tools and asked.turns == 0
    if asked.dialect == "anthropic_messages":
        return Reply(200, _messages(asked, text, call))
    if asked.dialect == "google_generate":
        return Reply(200, _generated(asked, text, call))
    if asked.dialect == "bedrock_converse":
        return Reply(200, _converse(text, call))
    if asked.dialect == "openai_chat":
        return Reply(200, _completion(asked, text, call))
    return Reply(200, _response(asked, text))


def _messages(asked: Asked, text: str, call: bool) -> str:
    """Anthropic Messages, as a stream; part of what was sent is read from the prompt cache and part written to it."""
    usage = {"input_tokens": 21, "cache_read_input_tokens": 1111, "cache_creation_input_tokens": 418}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "model": asked.model, "content": []}
    block: Json = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": word} for word in text.split(" ")]
    for delta in deltas[1:]:
        delta["text"] = f" {delta['text']}"
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ('{"city": "Pa', 'ris"}')]
    events: list[Json] = [
        {"type": "message_start", "message": message | {"usage": usage | {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use" if call else "end_turn"},
            "usage": {"output_tokens": 30},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _completion(asked: Asked, text: str, call: bool) -> Json:
    """A chat completion, whole."""
    function = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    message = {"content": None, "tool_calls": calls} if call else {"content": text}
    choice = {"index": 0, "message": message | {"role": "assistant"}, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 14, "completion_tokens": 8, "total_tokens": 22}
    return {"id": "c1", "object": "chat.completion", "model": asked.model, "choices": [choice], "usage": usage}


def _generated(asked: Asked, text: str, call: bool) -> Json:
    """A response of Gemini, whole."""
    part = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}} if call else {"text": text}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 8, "totalTokenCount": 17}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model, "responseId": "r1"}


def _converse(text: str, call: bool) -> Json:
    """A reply of Bedrock's Converse, whole."""
    tool = {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris"}}
    block = {"toolUse": tool} if call else {"text": text}
    usage = {"inputTokens": 9, "outputTokens": 8, "totalTokens": 17}
    message = {"role": "assistant", "content": [block]}
    return {"output": {"message": message}, "stopReason": "tool_use" if call else "end_turn", "usage": usage}


def _response(asked: Asked, text: str) -> Json:
    """A response, whole."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 13, "output_tokens": 8, "total_tokens": 21}
    return {"id": "r1", "object": "response", "status": "completed", "model": asked.model, "output": [item]} | {
        "usage": usage
    }
