"""Recorded streams: what some runs told, each protocol's writing of it, and what the real clients made of that.

`tests/peers/test_front_ends.py` has the clients read them; with TREADLE_RECORD=1 it records them anew. The ordinary
tests hold the writers to what was read: the digest of a stream changes with every byte of it.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from front_agents import agents

from treadle.drivers.watching import RunEvent, ToolProgress
from treadle.kernel.events import Happened, decode_event, encode_event
from treadle.models.port import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted
from treadle.serve.forms import encoded
from treadle.serve.protocols import ag_ui, ag_ui_post, ai_sdk, openai_chat, openai_responses
from treadle.serve.protocols.narrator import Narrator
from treadle.serve.protocols.openai_caller import Posted

FOLDER = Path(__file__).parent / "protocols" / "recorded"
QUESTIONS = ("think", "parallel", "pay", "break", "withdrawn", "hostile", "loop")
PIECES = {kind.__name__: kind for kind in (TextDelta, ThinkingDelta, ToolCallStarted, ToolCallDelta, ToolProgress)}
RUN = "20260101-000000-0123456789"


def record(question: str) -> list[dict[str, Any]]:
    """What a run tells, as JSON."""

    async def run() -> list[RunEvent]:
        async with agents()["shop"].stream(question) as live:
            return [event async for event in live]

    found: list[dict[str, Any]] = []
    for event in asyncio.run(run()):
        if isinstance(event, Happened):
            found.append(json.loads(encode_event(event)))
        elif type(event).__name__ in PIECES:
            found.append({"piece": type(event).__name__, **msgspec.to_builtins(event)})
    return found


def replayed(recorded: Sequence[dict[str, Any]]) -> list[RunEvent]:
    """The events that were recorded."""
    found: list[RunEvent] = []
    for one in recorded:
        if "piece" in one:
            given = {name: value for name, value in one.items() if name != "piece"}
            found.append(PIECES[one["piece"]](**given))
        else:
            found.append(decode_event(json.dumps(one)))
    return found


def streams(recorded: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What each protocol sends of it."""
    asked = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hello"}]}
    responses = openai_responses.Writer(RUN, 0, Posted("shop", (), None), 0.0)
    writers: dict[str, Any] = {
        "ai_sdk_6_first": ai_sdk.Writer(RUN, RUN),
        "ai_sdk_6": ai_sdk.Writer(RUN, RUN),
        "ai_sdk_7": ai_sdk.Writer(RUN, RUN, (), 7),
        "ag_ui": ag_ui.Writer(RUN, ag_ui_post.posted(asked)),
        "chat": openai_chat.Writer(RUN, "shop", 0.0),
        "responses": responses,
    }
    sent = {name: [] if name != "responses" else list(responses.open()) for name in writers}
    narrator = Narrator()
    for event in replayed(recorded):
        for move in narrator.hear(event):
            for name, writer in writers.items():
                sent[name] += writer.write(move)
    return {name: "".join([f"data: {encoded(part).decode()}\n\n" for part in parts]) for name, parts in sent.items()}


def digest(stream: str) -> str:
    """What tells a stream from every other."""
    return hashlib.sha256(stream.encode()).hexdigest()[:16]
