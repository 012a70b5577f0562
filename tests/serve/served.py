"""A real server on loopback, for the time of a test; and how its streams are read."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager, nullcontext

import httpx2
import uvicorn
from described import Held

from treadle import Agent, ask_before, deny, tool
from treadle.testing import ScriptedModel


@asynccontextmanager
async def serving(app, root_path="", **more):
    """`app` under uvicorn, and a client of it, each of whose answers is held against what the server says of itself."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=2, root_path=root_path
    )
    server = uvicorn.Server(config)
    # The signals of the process are the test's own affair.
    server.capture_signals = nullcontext
    failure = None
    async with asyncio.TaskGroup() as group:
        running = group.create_task(server.serve(sockets=[listening]))
        while not server.started and not running.done():  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            held = Held()
            async with httpx2.AsyncClient(base_url=address, timeout=30, transport=held, **more) as client:
                yield client
            await held.check()
        except Exception as error:
            # Raised below, outside the group, which would wrap it.
            failure = error
        finally:
            getattr(app, "stop", lambda: None)()
            server.should_exit = True
    listening.close()
    if failure is not None:
        raise failure


async def events_of(client, path, most=None, headers=None, found=None, **query):
    """The events of a stream, each as (id, name, data), until it ends or there are `most` with an id."""
    found = [] if found is None else found
    async with client.stream("GET", path, params=query, headers=headers or {}) as response:
        assert response.status_code == 200, await response.aread()
        async for one in parsed(response):
            found.append(one)
            if most is not None and sum(number is not None for number, _, _ in found) >= most:
                break
    return found


async def parsed(response):
    """The server-sent events of a response."""
    number, name, data = None, "", ""
    async for line in response.aiter_lines():
        if not line:
            if name:
                yield number, name, json.loads(data)
            number, name, data = None, "", ""
            continue
        key, _, value = line.partition(": ")
        if key == "id":
            number = int(value)
        elif key == "event":
            name = value
        elif key == "data":
            data = value


async def until(look, seconds=20):
    """What `look` finds, once it finds something."""
    for _ in range(seconds * 100):
        if found := await look():
            return found
        await asyncio.sleep(0.01)
    raise TimeoutError


async def run_when(client, run_id, *statuses):
    """The run, once it stands so."""

    async def look():
        found = (await client.get(f"/api/runs/{run_id}")).json()
        return found if found["status"] in statuses else None

    return await until(look)


def decision(pending, verdict="approve", **more):
    """The body that decides on a call that waits."""
    return {"decisions": [{"call": pending["call"], "fingerprint": pending["fingerprint"], "verdict": verdict, **more}]}


def clerk(paid, **more):
    """An agent that pays whom it is told to, when a person has agreed; and never Eve."""

    @tool(effect="write")
    def pay(to: str, amount: int) -> str:
        """Pays somebody."""
        paid.append((to, amount))
        return f"paid {amount} to {to}"

    def turn(request):
        last = request.messages[-1]
        if last.role == "tool":
            return f"Done: {last.text}"
        name, _, amount = last.text.removeprefix("pay ").partition(" ")
        return ("I shall pay.", [("pay", {"to": name, "amount": int(amount or 5)})])

    rules = [deny("pay", when=_to_eve, reason="Eve is blocked"), ask_before("pay")]
    return Agent(ScriptedModel(turn, chunk=4), name="clerk", tools=[pay], approvals=rules, **more)


def _to_eve(arguments):
    return arguments["to"] == "Eve"


def payer(paid, **more):
    """An agent that pays once a person agrees."""

    @tool(effect="write", needs_approval=True)
    def pay() -> str:
        """Pays."""
        paid.append("paid")
        return "paid"

    def turn(request):
        return "It is paid." if request.messages[-1].role == "tool" else [("pay", {})]

    return Agent(ScriptedModel(turn), name="payer", tools=[pay], **more)


def waiter(gate, **more):
    """An agent whose tool waits for `gate`."""

    @tool(effect="read")
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "it has come"

    def turn(request):
        return "It is over." if request.messages[-1].role == "tool" else ("I wait.", [("wait", {})])

    return Agent(ScriptedModel(turn, chunk=3), name="waiter", tools=[wait], **more)


def talker(**more):
    """An agent that says again what was said, and how many have spoken."""

    def turn(request):
        users = [message for message in request.messages if message.role == "user"]
        return f"{len(users)}: {users[-1].text}"

    return Agent(ScriptedModel(turn, chunk=5), name="talker", **more)
