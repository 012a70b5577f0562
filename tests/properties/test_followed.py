"""A run that is followed, cut off, paused, and taken over by the next server: what was told stands in its journal, and
the chat that is opened again has all that is there.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx2
from clock import run_quickly
from fronts import CALLERS, Kept, UseChat
from hypothesis import given
from hypothesis import strategies as st
from player import Says
from toolbox import TOOLS, World
from worlds import Setup, examples, setups

from treadle import MemoryJournal
from treadle.kernel.events import RunFinished, RunPaused
from treadle.serve import Bounds, Served, app

FREE = Bounds(requests_per_minute=10**9, starts_per_minute=10**9)
STATES = {"refused": "output-denied", "failed": "output-error", "done": "output-available"}
POST = {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}]}


async def read(server: Served, path: str, last: int, cut: int | None, slow: int) -> str:
    """What a client reads of a stream that it follows from event `last` on, until it goes after `cut` chunks."""
    gone, got = asyncio.Event(), list[bytes]()
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        if (message := next(asked, None)) is not None:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body") and not gone.is_set():
            got.append(message["body"])
        if cut is not None and len(got) >= cut:
            gone.set()
        for _ in range(slow):
            await asyncio.sleep(0)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    headers = [(b"host", b"localhost"), *([(b"last-event-id", b"%d" % last)] if last else [])]
    about = {"headers": headers, "server": ("127.0.0.1", 80), "scheme": "http", "http_version": "1.1", "root_path": ""}
    await server({**scope, **about}, receive, send)
    return b"".join(got).decode()


def events_in(text: str) -> Iterator[dict[str, str]]:
    """The server-sent events of a stream that are whole, by field."""
    for block in text.split("\n\n")[:-1]:
        yield dict(line.partition(": ")[::2] for line in block.splitlines())


async def follow(server: Served, run: str, cuts: Sequence[int], slow: int, told: list[Any]) -> None:
    """Follows a run, comes back where it was cut off, and keeps the numbered events that it was told."""
    for cut in [*cuts, None]:
        for one in events_in(await read(server, f"/api/runs/{run}/stream", len(told), cut, slow)):
            if "id" in one:
                assert int(one["id"]) == len(told) + 1
                told.append(json.loads(one["data"]))
            elif one.get("event") in ("end", "error"):
                return


def check_chat(messages: Sequence[Any], kept: Kept, client: UseChat) -> None:
    """A chat that is opened again is what its journal says."""
    parts = [part for message in messages if message["role"] == "assistant" for part in message["parts"]]
    said, wanted = [
        "".join(one).replace("\n\n", "") for one in ([p["text"] for p in parts if p["type"] == "text"], kept.texts)
    ]
    assert client.typed or said == wanted, (said, wanted)
    own = [one for one in parts if "toolCallId" in one and one["type"] != "dynamic-tool"]
    # Of a call whose run below waits it is said that it has come to something, so that a verdict is sent.
    ended = [one for one in own if one["state"].startswith("output-") and one.get("output") != {"waits": True}]
    shown = {p["toolCallId"]: p["state"] for p in ended if p["type"].removeprefix("tool-") not in CALLERS}
    assert shown == {call: STATES[client.as_told(*kept.said_of(call))[0]] for call in kept.results}


async def followed(
    setup: Setup, verdicts: Sequence[str], cuts: Sequence[int], slow: int, turns: tuple[int, int], pauses: bool
) -> None:
    script = tuple(replace(turn, thinking="") if isinstance(turn, Says) else turn for turn in setup.script)
    setup = replace(setup, script=script, hooks=replace(setup.hooks, instructions=None))
    world, journal, told = World(), MemoryJournal(), list[Any]()
    agent = setup.agent(setup.player(world), journal, TOOLS, world)
    one, two = [app([agent], journal=journal, deps=lambda user: world, grace=60, bounds=FREE) for _ in range(2)]
    paused = None
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(one), base_url="http://localhost", timeout=None)
    async with http, one.lifespan(None), asyncio.TaskGroup() as group:
        asking = group.create_task(http.post("/ai-sdk/agent?sdk=7", json=POST))
        while not (lines := [line for line in await journal.list(5) if line.parent is None]):  # noqa: ASYNC110 - nothing tells of the first run
            await asyncio.sleep(0)
        path = f"/api/runs/{lines[0].run_id}"
        group.create_task(follow(one, lines[0].run_id, cuts, slow, told))
        for _ in range(turns[0]):
            await asyncio.sleep(0)
        paused = await http.post(f"{path}/pause") if pauses else None
        for _ in range(turns[1]):
            await asyncio.sleep(0)
        one.stop()
        assert (await asking).status_code == 200
    rested = await journal.read(lines[0].run_id)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(two), base_url="http://localhost", timeout=None)
    async with http, two.lifespan(None):
        if paused is not None and paused.status_code == 202 and isinstance(rested[-1], RunPaused):
            assert rested[-1].stop.detail != "the server was stopped", "a person paused it"
            await asyncio.sleep(1)
            assert await journal.read(lines[0].run_id) == rested
            await http.post(f"{path}/resume", json={})
        again = await http.post("/ai-sdk/agent?sdk=7", json=POST)
        assert again.headers.get("x-treadle-run", lines[0].run_id) == lines[0].run_id
        await asyncio.sleep(1)
        for verdict in verdicts:
            found = (await http.get(path)).json()
            given = [
                {"call": one["call"], "fingerprint": one["fingerprint"]}
                | ({"verdict": verdict} if verdict in one["allowed"] else {"verdict": "result", "result": "given"})
                for one in found["pending"]
            ]
            if found["status"] != "waiting" or not given:
                break
            assert (await http.post(f"{path}/decisions", json={"decisions": given})).status_code == 200
            await http.get(f"{path}/stream?until=pause")
        stored = (await http.get(f"{path}/events?limit=1000")).json()["events"]
        assert told == stored[: len(told)]
        events = await journal.read(lines[0].run_id)
        if isinstance(events[-1], RunFinished | RunPaused):
            client = UseChat(http, setup.output_mode is not None)
            check_chat((await http.get("/ai-sdk/agent/c/messages?sdk=7")).json(), Kept.of(events), client)


@examples(6, shrink=False)
@given(
    setup=setups(),
    verdicts=st.lists(st.sampled_from(["approve", "deny", "again"]), max_size=3),
    cuts=st.lists(st.integers(1, 6), max_size=9),
    slow=st.integers(0, 6),
    turns=st.tuples(st.integers(0, 60), st.integers(0, 20)),
    pauses=st.booleans(),
)
def test_what_was_told_stands_wherever_the_run_goes_on(
    setup: Setup, verdicts: list[str], cuts: list[int], slow: int, turns: tuple[int, int], pauses: bool
) -> None:
    run_quickly(lambda: followed(setup, verdicts, cuts, slow, turns, pauses), threads=True)
