"""A provider on a real socket: replies in each dialect's own bytes, cut and broken off anywhere, and its books."""

import json
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from zlib import crc32

from dialects import WIRES, Json

from treadle import Price, Usage
from treadle.models import AnthropicModel, GoogleModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.bedrock_model import BedrockModel
from treadle.models.codec import DONE

KEY = "sk-made-up-0123456789abcdef"
PRICES = (Price(1, 5, cache_read=0.1), Price(3, 15), Price(0.5, 2))
MODELS: dict[str, Any] = {
    "chat": lambda **options: OpenAIChatModel("gpt-4o", **options),
    "responses": lambda **options: OpenAIResponsesModel("gpt-5", **options),
    "messages": lambda **options: AnthropicModel("claude-sonnet-4-5", **options),
    "google": lambda **options: GoogleModel("gemini-2.5-pro", **options),
    "converse": lambda **options: BedrockModel("us.amazon.nova-pro-v1:0", region="us-east-1", **options),
}


Call = tuple[str, str, int]
"""The id of a call, its tool, and its number."""


@dataclass(frozen=True)
class Saying:
    """One reply, and what becomes of it: `breaks` is how, `at` how far in its bytes, which come in `pieces`."""

    text: str
    numbers: tuple[int, ...]
    thought: str
    breaks: str
    at: float
    pieces: int
    tokens: int
    gateway: str = ""
    """What one between sends of arguments beside them: "nothing" before, or all of them "again" after; or that it is
    "hasty", see `_hastily`, or "careless", see `_carelessly`."""
    looks: tuple[int, ...] = ()
    """The calls that only read, before those that pay, and may begin while the reply still comes."""
    declined: tuple[str, ...] = ()
    """The tools that a model of Claude's called before it declined, and another took the reply over."""

    @property
    def finish(self) -> str:
        return "tool_calls" if self.numbers or self.looks else "stop"


@dataclass
class Asked:
    """One request, and what was charged for it."""

    place: int
    body: Json
    saying: Saying
    calls: list[Call]
    declined: list[Call]
    usage: Usage
    begun: bool = False
    """Whether anything came that tells an event from none."""


def frame(event: Json) -> bytes:
    """An event of Bedrock's as a frame of AWS."""
    kind = event["type"]
    pairs = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in pairs.items()
    )
    payload = json.dumps(event[kind]).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return whole + struct.pack(">I", crc32(whole))


def events_of(asked: Asked, dialect: str) -> tuple[bytes, bytes]:
    """The bytes of a reply: those before it has said why it ends, and the rest."""
    writer, saying = WIRES[dialect][1]("made-up"), asked.saying
    events = [*writer.begin(), *(writer.thinking(saying.thought) if saying.thought else ())]
    if asked.declined:
        between = {"type": "fallback", "from": {"model": "made-up"}, "to": {"model": "made-up-too"}}
        events += [*_called(writer, asked.declined, ""), *writer.block(between)]
    events += writer.text(saying.text) if saying.text else []
    events += _called(writer, asked.calls, saying.gateway if dialect in ("chat", "messages") else "")
    rest = writer.finish(saying.finish, asked.usage)
    if saying.gateway == "hasty":
        events = _hastily(dialect, events, rest, saying)
    elif saying.gateway == "careless":
        events, rest = _carelessly(dialect, events, rest, asked)
    return _bytes(dialect, events), _bytes(dialect, rest)


def _hastily(dialect: str, events: Sequence[Json], rest: Sequence[Json], saying: Saying) -> list[Json]:
    """The events as servers that convert have them: of Chat each is said to be the last, of Responses no item is
    declared done and the end has the text alone, of Messages each block is begun twice.
    """
    if dialect == "chat" and not saying.breaks:
        for event in events:
            event["choices"][0]["finish_reason"] = "stop"
    elif dialect == "responses":
        content = [{"type": "output_text", "text": saying.text}]
        rest[-1]["response"]["output"] = [{"type": "message", "id": "m", "role": "assistant", "content": content}]
        return [event for event in events if event["type"] != "response.output_item.done"]
    elif dialect == "messages":
        return [event for one in events for event in [one] * (1 + (one["type"] == "content_block_start"))]
    return list(events)


def _carelessly(
    dialect: str, events: Sequence[Json], rest: Sequence[Json], asked: Asked
) -> tuple[list[Json], list[Json]]:
    """The events of one that puts its own numbers in the place of ids, and keeps the connection open by empty objects.

    In Chat calls have no place, and their names stand in each piece; in Messages and Responses an error comes last.
    """
    numbers = {call_id: 10 + at for at, (call_id, _, _) in enumerate(asked.calls)}
    events, rest = (_numbered(list(given), numbers) for given in (events, rest))
    if dialect == "chat":
        entries = [one for event in events for one in event["choices"][0]["delta"].get("tool_calls", ())]
        for place, entry in enumerate(entries):
            del entry["index"]
            before = entries[place - 1]["function"].get("name") if place else None
            entry["function"].setdefault("name", before)
    if dialect in ("messages", "responses") and not asked.saying.breaks:
        rest = [*rest, {"type": "error", "error": {"type": "api_error", "message": "The stream is closed."}}]
    empty: list[Json] = [] if dialect == "converse" else [{}]
    return [one for event in events for one in (event, *empty)], rest


def _numbered(value: Any, numbers: dict[str, int]) -> Any:
    """`value` with numbers in the place of ids."""
    if isinstance(value, dict):
        return {name: _numbered(one, numbers) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbered(one, numbers) for one in value]
    return numbers.get(value, value) if isinstance(value, str) else value


def _called(writer: Any, calls: Sequence[Call], between: str) -> Iterator[Json]:
    for call_id, name, number in calls:
        yield from writer.start(call_id, name)
        written = json.dumps({"number": number})
        pieces = [*(["{}"] if between == "nothing" else ()), written[:5], written[5:]]
        pieces += [written] if between == "again" else []
        for piece in pieces:
            yield from writer.piece(piece)
        yield from writer.end()


def _bytes(dialect: str, events: Sequence[Json]) -> bytes:
    if dialect == "converse":
        return b"".join(map(frame, events))
    return b"".join(b"data: " + (b"[DONE]" if one == DONE else json.dumps(one).encode()) + b"\n\n" for one in events)


@dataclass
class Wire:
    """The provider. It answers each request with the next saying, in the dialect of the place in the chain."""

    dialects: Sequence[str]
    sayings: list[Saying]
    asked: list[Asked] = field(default_factory=list)
    address: str = ""

    def models(self) -> list[Any]:
        """The models of the chain, each at its own path and price."""
        return [
            MODELS[dialect](base_url=f"{self.address}/{place}", api_key=KEY, price=PRICES[place])
            for place, dialect in enumerate(self.dialects)
        ]

    def answer(self, path: str, body: bytes) -> tuple[Asked, bytes, str]:
        """What is charged for a request, what is sent, and how that ends."""
        place, number = int(path.split("/")[1]), len(self.asked)
        dialect = self.dialects[place]
        saying = self.sayings[min(number, len(self.sayings) - 1)]
        if number >= len(self.sayings):
            saying = Saying("That is all.", (), "", "", 0, 1, 8)
        named = [*(("look", one) for one in saying.looks), *(("pay", one) for one in saying.numbers)]
        calls = [(f"call_{number}_{at}", name, 100 * number + one) for at, (name, one) in enumerate(named)]
        left = enumerate(saying.declined if dialect == "messages" else ())
        declined = [(f"left_{number}_{at}", name, 100 * number + 50 + at) for at, name in left]
        usage = Usage(len(body) // 8, saying.tokens, len(body) // 32 if dialect != "google" else 0)
        asked = Asked(place, json.loads(body), saying, calls, declined, usage)
        before, rest = events_of(asked, dialect)
        sent = before + rest if not saying.breaks else before[: int(saying.at * len(before))]
        if saying.breaks == "junk":
            sent = before + (b"\x00" * 16 if dialect == "converse" else b"data: {\xff\n\n")
        asked.begun = len(sent) >= 5 or (saying.breaks == "resets" and bool(sent))
        self.asked.append(asked)
        return asked, sent, saying.breaks

    def cost(self, asked: Asked) -> Decimal:
        """What a whole reply is charged."""
        return PRICES[asked.place].of(asked.usage)


def handler(wire: Wire) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

        def do_POST(self) -> None:
            asked, sent, breaks = wire.answer(self.path, self.rfile.read(int(self.headers["content-length"])))
            kind = "vnd.amazon.eventstream" if wire.dialects[asked.place] == "converse" else "event-stream"
            self.send_response(200)
            self.send_header("content-type", f"{'application' if '.' in kind else 'text'}/{kind}")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            size = max(1, -(-len(sent) // asked.saying.pieces))
            for start in range(0, len(sent), size):
                piece = sent[start : start + size]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            if breaks in ("", "ends", "junk"):
                self.wfile.write(b"0\r\n\r\n")
                return
            self.close_connection = True
            if breaks == "resets":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_WR)

    return Handler


@contextmanager
def listening(wire: Wire) -> Iterator[Wire]:
    """The provider, while it listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(wire)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        wire.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield wire
        finally:
            server.shutdown()
            thread.join()
