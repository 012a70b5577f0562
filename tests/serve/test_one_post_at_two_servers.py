"""The same post at two servers of one journal: one is held wherever it reads, while the other does all of it."""

import asyncio
import json
from contextlib import suppress

import pytest
from served import run_when, serving, until

from treadle import Agent, SqliteJournal, external_tool, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


CALLS = {"pay": ("pay", {}), "choose": ("colour", {})}
colour = external_tool("colour", "Has the person choose a colour.", {"type": "object", "properties": {}}, wait=True)


class Held(SqliteJournal):
    """Once it is armed, its answer number `at` comes when it is let go."""

    def __init__(self, path, at):
        super().__init__(path)
        self.at, self.armed, self.count = at, False, 0
        self.is_held, self.gate = asyncio.Event(), asyncio.Event()

    async def _answer(self, found):
        if self.armed:
            self.count += 1
            if self.count - 1 == self.at:
                self.is_held.set()
                await self.gate.wait()
        return found

    async def read(self, *args, **more):
        try:
            found = await super().read(*args, **more)
        except Exception:
            await self._answer(None)
            raise
        return await self._answer(found)

    async def list(self, *args, **more):
        return await self._answer(await super().list(*args, **more))

    async def holders(self, *args, **more):
        return await self._answer(await super().holders(*args, **more))


def asking(asked, may_end):
    """An agent that looks something up where it is told to, and ends otherwise; when it may."""

    @tool(effect="read")
    def look() -> str:
        """Looks."""
        return "seen"

    @tool(effect="write", needs_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    async def turn(request):
        said = request.messages[-1].text
        asked.append(said)
        if said in CALLS:
            return [CALLS[said]]
        if said == "look":
            await may_end.wait()
            return [("look", {})]
        await may_end.wait()
        return "It is over."

    return Agent(ScriptedModel(turn), name="talker", tools=[look, pay, colour])


def _said(text):
    return {"id": text, "role": "user", "content": text}


def ag_ui(text, before):
    return "/ag-ui/talker", {"threadId": "t", "runId": text, "messages": [_said(text)]}


def ai_sdk(text, before):
    return "/ai-sdk/talker", {"id": "t", "messages": [{**_said(text), "parts": [{"type": "text", "text": text}]}]}


def responses(text, before):
    more = {"previous_response_id": before} if before else {}
    return "/v1/responses", {"model": "talker", "input": text, "stream": True, **more}


def rest(text, before):
    return "/api/runs", {"agent": "talker", "input": text, "conversation": "t"}


def decides_ag_ui(text, before):
    run, call = before
    approval = f"{run}:{call['call']}#{call['fingerprint']}"
    payload = text if call["kind"] == "result" else True
    entry = {"interruptId": approval, "status": "resolved", "payload": payload}
    return "/ag-ui/talker", {"threadId": "t", "runId": "second", "messages": [], "resume": [entry]}


def decides_ai_sdk(text, before):
    run, call = before
    part = {"type": f"tool-{call['tool']}", "toolCallId": call["call"], "state": "output-available", "output": text}
    if call["kind"] == "approval":
        approval = {"id": f"{run}:{call['call']}#{call['fingerprint']}", "approved": True}
        part |= {"state": "approval-responded", "approval": approval}
    return "/ai-sdk/talker", {"id": "t", "messages": [{"id": run, "role": "assistant", "parts": [part]}]}


def decides_responses(text, before):
    run, call = before
    item = {"type": "function_call_output", "call_id": f"{run}:{call['call']}", "output": text}
    if call["kind"] == "approval":
        approval = f"{run}:{call['call']}#{call['fingerprint']}"
        item = {"type": "mcp_approval_response", "approval_request_id": approval, "approve": True}
    return "/v1/responses", {"model": "talker", "input": [item], "previous_response_id": f"resp_{run}_0"}


DECIDES = (decides_ag_ui, decides_ai_sdk, decides_responses)


async def _posted(client, front, text, before=None):
    """The run that answers a post; None if the one that has it is given too long a time to be waited for, or if what
    it decides is decided.
    """
    route, body = front(text, before)
    async with client.stream("POST", route, json=body, headers={"idempotency-key": text}) as answer:
        told = "".join([part async for part in answer.aiter_text()])
        if "is under way elsewhere" in told or (front in DECIDES and answer.status_code == 409):
            return None
        assert answer.is_success, told
        return answer.headers.get("x-treadle-run") or json.loads(told)["id"]


async def _while_nothing(look):
    """Until `look` finds something, for a moment."""

    async def looked():
        return look()

    with suppress(TimeoutError):
        await until(looked, seconds=1)


async def _at_both(front, text, journal, held, asked, ends, before=None):
    """The runs that answer the same post at both; the second goes on when the first has ended, or is under way."""
    may_end = asyncio.Event()
    served = [app([asking(asked, may_end)], journal=one, take_up=False) for one in (journal, held)]
    async with serving(served[0]) as here, serving(served[1]) as there:
        before = await before(here, may_end) if before else None
        held.armed = True
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            try:
                behind = group.create_task(_posted(there, front, text, before))
                await _while_nothing(lambda: behind.done() or held.is_held.is_set() or text in asked)
                ahead = group.create_task(_posted(here, front, text, before))
                # The one that is held may have begun the run before: then nothing happens until it goes on.
                await _while_nothing(lambda: text in asked)
                if ends:
                    may_end.set()
                    await _while_nothing(ahead.done)
                held.gate.set()
                # Long enough to be refused because the run is under way, and to look again.
                await asyncio.sleep(0.2)
            finally:
                may_end.set()
                held.gate.set()
        return behind.result(), ahead.result()


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "under way"])
@pytest.mark.parametrize("front", [ag_ui, ai_sdk, responses, rest])
async def test_it_begins_one_run_wherever_one_of_them_is_held(tmp_path, front, ends):
    async def begun(at):
        asked, path = [], tmp_path / f"{at}.db"
        async with SqliteJournal(path) as journal, Held(path, at) as held:
            behind, ahead = await _at_both(front, "hi", journal, held, asked, ends)
            assert (at, behind == ahead, asked) == (at, True, ["hi"])

    await _all(begun, 10)


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "under way"])
@pytest.mark.parametrize("front", [ag_ui, ai_sdk, responses])
async def test_it_is_said_once_to_a_run_that_waits_wherever_one_of_them_is_held(tmp_path, front, ends):
    async def said(at):
        asked, path = [], tmp_path / f"{at}.db"

        async def before(client, may_end):
            async with asyncio.TaskGroup() as group:
                posted = group.create_task(_posted(client, front, "look"))
                await _while_nothing(lambda: asked)
                (run,) = (await client.get("/api/runs")).json()["runs"]
                await client.post(f"/api/runs/{run['id']}/pause")
                may_end.set()
            may_end.clear()
            await run_when(client, posted.result(), "waiting")
            return f"resp_{run['id']}_0"

        async with SqliteJournal(path) as journal, Held(path, at) as held:
            behind, ahead = await _at_both(front, "no, wait", journal, held, asked, ends, before)
            assert (at, ahead in (behind, None), asked) == (at, True, ["look", "no, wait"])

    await _all(said, 18)


@pytest.mark.parametrize(("asks", "text"), [("pay", "paid"), ("choose", "the red one")], ids=["verdict", "result"])
@pytest.mark.parametrize("front", DECIDES)
async def test_it_decides_once_wherever_one_of_them_is_held(tmp_path, front, asks, text):
    async def decided(at):
        asked, path = [], tmp_path / f"{at}.db"

        async def before(client, may_end):
            run = await _posted(client, ag_ui, asks)
            return run, (await run_when(client, run, "waiting"))["pending"][0]

        async with SqliteJournal(path) as journal, Held(path, at) as held:
            answers = await _at_both(front, text, journal, held, asked, True, before)
            assert (at, len({*answers} - {None}), asked) == (at, 1, [asks, text])

    await _all(decided, 12)


async def _all(world, count):
    """All of them side by side: what takes time in each is the waiting."""
    async with asyncio.TaskGroup() as group:
        for at in range(count):
            group.create_task(world(at))
