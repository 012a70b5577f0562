"""Serve an agent over HTTP: two users, a decision that only one of them may take, and a stream that is gone on with."""

import asyncio

import httpx2

from treadle import Agent, MemoryJournal, ask_before, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel


@tool(effect="write")
def refund(customer: str, amount: int) -> str:
    """Pays money back to a customer."""
    return f"{amount} paid back to {customer}"


script = ScriptedModel([[("refund", {"customer": "Ada", "amount": 250})], "Ada has her money back."])
clerk = Agent(script, tools=[refund], approvals=[ask_before("refund")])
agents = app({"clerk": clerk}, journal=MemoryJournal(), auth=lambda request: User(request.headers["x-user"]))


def client(name: str) -> httpx2.AsyncClient:
    """Calls the app without a network; `uvicorn serving:agents` would serve it on one."""
    transport = httpx2.ASGITransport(agents)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers={"x-user": name})


async def events(http: httpx2.AsyncClient, run: str, after: int) -> list[str]:
    """The names of the numbered events, until the run waits or has ended."""
    stream = await http.get(f"/api/runs/{run}/stream?until=pause", headers={"last-event-id": str(after)})
    blocks = [block.splitlines() for block in stream.text.split("\n\n")]
    return [lines[1].removeprefix("event: ") for lines in blocks if lines and lines[0].startswith("id: ")]


async def main() -> None:
    async with agents.lifespan(None), client("ada") as ada, client("bob") as bob:
        run = (await ada.post("/api/runs", json={"agent": "clerk", "input": "Ada wants her money back."})).json()["id"]
        seen = await events(ada, run, 0)
        print("\n".join(seen))
        (call,) = (await ada.get(f"/api/runs/{run}")).json()["pending"]
        decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
        for http, name in ((bob, "bob"), (ada, "ada"), (ada, "ada again")):
            answer = await http.post(f"/api/runs/{run}/decisions", json={"decisions": [decision]})
            print(f"{name}: {answer.status_code}")
        print("\n".join(await events(ada, run, len(seen))))
        print((await ada.get(f"/api/runs/{run}")).json()["text"])


if __name__ == "__main__":
    asyncio.run(main())
