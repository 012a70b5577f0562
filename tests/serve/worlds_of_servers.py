"""A world of two servers over one journal: what is asked of them, what they answered, and what must hold of it all."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from itertools import pairwise

from two_apps import Client, Paced

from treadle import Agent, Budget, Limits, MemoryJournal, ToolContext, Usage, ask_before, external_tool, tool
from treadle.drivers.conversing import BESIDE
from treadle.drivers.purse.ledger import Ledger
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.purse.sqlite_rows import SqliteRows
from treadle.journal.info import told_by
from treadle.kernel.events import (
    MessageAdded,
    ModelReplied,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolsListed,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import stopped
from treadle.result import conversation_part, history
from treadle.serve import Bounds, app
from treadle.testing import ScriptedModel

QUESTION = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
ASK = external_tool("ask", "Asks whoever is there a question, and waits for the answer.", QUESTION, wait=True)
COST = 10
"""Tokens that a reply takes."""
WHOSE = ("all", "")
"""The purse of everybody."""
FREE = Bounds(requests_per_minute=10**9, starts_per_minute=10**9)


class Server:
    """A process that serves, which may be killed at any call of its journal."""

    def __init__(self, world, pace):
        self.window = Paced(world.shared, pace)
        self.window.on_death = self._gone
        self.app = app(
            [clerk(world, self.window)], journal=self.window, deps=lambda user: self.window, grace=0.0, bounds=FREE
        )
        self.requests = set()
        self._ended = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self):
        async with self.app.lifespan(self.app):
            await self._ended.wait()

    def _gone(self):
        self._ended.set()
        for task in self.requests:
            task.cancel()

    async def end(self, *, killed):
        """Ends it, as a crash does or as it is told to."""
        if killed:
            self.window.die()
        self.app.stop()
        self._ended.set()
        await asyncio.wait({self._task}, timeout=10)
        assert self._task.done(), "it does not end"
        if not killed and not self.window.dead:
            self._task.result()
        self.window.die()
        for task in self.requests:
            task.cancel()

    async def ask(self, method, path, given=None, headers=()):
        """The status and the JSON of an answer; no status if it died meanwhile."""
        return await self._answered(Client(self.app, method, path, given, headers), f"{method} {path}")

    async def post(self, front, talk, name, text):
        """A message that somebody posts with a front end, under an id: the status, and the run that answers it."""
        if front == "ai-sdk":
            message = {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}
            given = {"id": talk, "trigger": "submit-message", "messages": [message]}
        else:
            message = {"id": name, "role": "user", "content": text}
            given = {"threadId": talk, "runId": name, "messages": [message], "tools": [], "context": []}
            given |= {"state": {}, "forwardedProps": {}}
        return await self.send(f"/{front}/clerk", given)

    async def send(self, path, given):
        """What somebody posts with a front end: the status, the run that answers it, and the answer."""
        client = Client(self.app, "POST", path, given)
        status, answer = await self._answered(client, f"{path} {given}")
        return status, client.headers.get("x-treadle-run", ""), answer

    async def _answered(self, client, what):
        task = asyncio.get_running_loop().create_task(client.run())
        self.requests.add(task)
        done, _ = await asyncio.wait({task}, timeout=10)
        self.requests.discard(task)
        assert done, f"{what} is not answered"
        if task.cancelled() or self.window.dead:
            return None, {}
        status, answer = task.result()
        assert status < 500 or (status == 503 and self.window.was_away), (what, status, answer)
        return status, answer


class Rows:
    """What a process has of the rows of a budget that several share: nothing, once it has died."""

    def __init__(self, rows, window):
        self._rows, self._window = rows, window

    def __getattr__(self, name):
        if self._window.dead:
            raise BudgetUnavailable("the process has died", where="memory")
        return getattr(self._rows, name)


class Follower:
    """Somebody who follows a run, goes away, and comes back to whichever server."""

    def __init__(self, run_id):
        self.run_id, self.seen, self.errors = run_id, [], []
        self._client = self._task = None

    def come(self, server):
        self.leave()
        after = len(self.seen)
        self._client = Client(server.app, "GET", f"/api/runs/{self.run_id}/stream?after={after}&deltas=false")
        self._task = asyncio.get_running_loop().create_task(self._client.run())
        server.requests.add(self._task)

    def leave(self):
        """Goes away; what has come by then it has seen."""
        if self._client is None:
            return
        self._client.gone.set()
        if self._client.status == 200:
            for chunk in self._client.body.decode().split("\n\n")[:-1]:
                lines = dict(line.partition(": ")[::2] for line in chunk.splitlines())
                if "id" in lines:
                    self.seen.append((int(lines["id"]), json.loads(lines["data"])["type"]))
                elif lines.get("event") == "end":
                    assert self.seen[-1][1] == "run_finished", (self.run_id, self.seen)
        self._client = None

    @property
    def task(self):
        return self._task


class World:
    """Two servers over one journal."""

    def __init__(self):
        self.shared, self.rows = MemoryJournal(), SqliteRows(None)
        self.servers = []
        self.executed, self.allowed, self.again = Counter(), {}, Counter()
        self.told, self.deleted, self.gone = {}, set(), []
        self.followers = []
        self.unasked, self.anew = [], {}
        self.number = 0
        self.open = asyncio.Event()

    def next(self):
        self.number += 1
        return self.number

    async def begin(self):
        self.servers = [Server(self, (0,)), Server(self, (0,))]
        await self.turns(20)

    async def turns(self, count):
        for _ in range(count):
            await asyncio.sleep(0)

    async def restart(self, which, pace, *, killed):
        await self.servers[which].end(killed=killed)
        self.servers[which] = Server(self, pace)
        await self.turns(5)

    async def settle(self):
        """Waits until nobody drives anything."""
        for _ in range(4000):
            await asyncio.sleep(0)
            if not any(one.app.runs.live.driven or one.app.runs.live._beginning for one in self.servers):
                return
        raise AssertionError("runs are driven for ever")

    @property
    def runs(self):
        """The runs that there are, oldest first, and their events."""
        found = {run_id: told_by(events) for run_id, events in self.shared._runs.items()}
        return {run_id: self.shared._runs[run_id] for run_id in sorted(found, key=lambda one: _age(found[one]))}

    def runs_of(self, talk):
        """The runs of a conversation that there are, oldest first, but for those that it goes on without."""
        lines = [self.line(one) for one in self.runs]
        return [line.run_id for line in lines if line.conversation == talk and line.stop != BESIDE]

    def line(self, run_id):
        return told_by(self.shared._runs[run_id])

    def remember(self, run_id, text):
        """A message that was answered with a success."""
        self.told.setdefault(run_id, []).append(text)

    def forget(self, run_id):
        """A run that somebody had removed."""
        if run_id in self.shared._runs:
            self.gone.append(self.line(run_id))
        self.told.pop(run_id, None)
        self.deleted.add(run_id)

    # What must hold.

    def check(self):
        """Whatever has happened."""
        assert not self.unasked, "carried out with what nobody allowed"
        for call, count in self.executed.items():
            assert count <= 1 + self.again[call], f"{call} was carried out {count} times"
        for run_id, texts in self.told.items():
            assert run_id in self.shared._runs, f"run {run_id}, which was begun with {texts}, is gone"
            said = _said_to(self.shared._runs[run_id])
            for text in texts:
                assert text in said, f"{text!r} was said to run {run_id}, which has {said}"
        for follower in self.followers:
            numbers = [number for number, _ in follower.seen]
            assert numbers == [*range(1, len(numbers) + 1)], f"{follower.run_id}: {numbers}"
            if follower.run_id in self.shared._runs and follower.run_id not in self.deleted:
                events = self.shared._runs[follower.run_id]
                kinds = [type(one).__struct_config__.tag for one in events[: len(numbers)]]
                assert [kind for _, kind in follower.seen] == kinds, follower.run_id
        self._check_conversations(whole=False)

    def _check_conversations(self, *, whole):
        talks = {}
        for events in self.runs.values():
            line = told_by(events)
            if line.conversation and line.stop != BESIDE and (whole or not _only_begun(events)):
                talks.setdefault(line.conversation, []).append((line, events))
        for name, found in talks.items():
            is_open = [line.run_id for line, _ in found if line.status != "finished"]
            assert is_open in ([], [found[-1][0].run_id]), f"conversation {name}: {is_open} are open of {found}"
            for (line, events), (after, later) in pairwise(found):
                if any(one.conversation == name and _age(line) < _age(one) < _age(after) for one in self.gone):
                    continue
                source, instead = self.anew.get(after.run_id, (line.run_id, ""))
                run_id, _, number = source.partition(":")
                if run_id and run_id not in self.shared._runs:
                    continue
                before, events = conversation_part(later[0].messages)[:-1], self.shared._runs.get(run_id)
                said = [] if events is None else _ends_with(events)
                if after.run_id in self.anew and events is not None:
                    since = [text for paused, text in said_in_pauses(events) if paused > int(number or 0)][:1]
                    since = [instead] if instead in _said_to(events) else since
                    said = said[: next((i for i, one in enumerate(said) if [one.text] == since), None)]
                assert before == said, (
                    f"run {after.run_id} does not go on from {source}: {events and _kinds(events)}, "
                    f"and then {_kinds(later)}"
                )

    async def check_at_the_end(self):
        """Everything comes to its end, when it is resumed and decided on."""
        for follower in self.followers:
            follower.leave()
        for which in (0, 1):
            await self.restart(which, (0,), killed=False)
        self.open.set()
        for _ in range(12):
            await self.settle()
            unfinished = [run_id for run_id in self.runs if self.line(run_id).status != "finished"]
            if not unfinished:
                break
            for run_id in reversed(unfinished):
                await self._go_on(run_id)
        assert not unfinished, [(self.line(one), self.shared._runs[one][-1]) for one in unfinished]
        self.check()
        self._check_conversations(whole=True)
        for talk in ("a", "b", "c"):
            await self._check_chat(talk)
        self._check_purse()

    def _check_purse(self):
        """Nothing is set aside for runs that have ended, and all that they took is told."""
        sums = purse(self.rows).ledger.sums(*WHOSE)
        # A fork has the very events of the run that it is a fork of.
        replies = {id(one) for events in self.runs.values() for one in events if isinstance(one, ModelReplied)}
        assert sums.used.tokens >= COST * len(replies), (
            f"{len(replies)} replies are in the journal, {sums} in the purse"
        )
        assert self.deleted or sums.claimed == sums.used, (
            f"{sums}: {self.rows.set_aside(WHOSE[0])} have something set aside"
        )

    async def _check_chat(self, talk):
        """A conversation as a front end opens it has what was said in it, once, and in that order."""
        status, found = await self.servers[0].ask("GET", f"/api/conversations/{talk}")
        chat = (await self.servers[1].ask("GET", f"/ai-sdk/clerk/{talk}/messages"))[1]
        if status == 404:
            assert chat == []
            return
        said = [one["content"] for one in found["messages"] if one["role"] == "user"]
        parts = [(one["role"], part) for one in chat for part in one["parts"]]
        asked = [
            part["data"]["text"] if part["type"] == "data-said" else part["text"]
            for role, part in parts
            if part["type"] == "data-said" or (role, part["type"]) == ("user", "text")
        ]
        assert asked == said, chat
        names = [one["id"] for one in chat]
        assert len(names) == len({*names}), names
        assert all(part.get("state") not in ("approval-requested", "input-available") for _, part in parts), chat

    async def _go_on(self, run_id):
        here = self.servers[0]
        status, found = await here.ask("GET", f"/api/runs/{run_id}")
        assert status == 200, found
        verdicts = [
            {"call": one["call"], "fingerprint": one["fingerprint"]}
            | ({"verdict": "deny"} if "deny" in one["allowed"] else {"verdict": "result", "result": "nobody knows"})
            for one in found["pending"]
        ]
        path = "decisions" if verdicts else "resume"
        status, answer = await here.ask(
            "POST", f"/api/runs/{run_id}/{path}", {"decisions": verdicts} if verdicts else {}
        )
        if status not in (200, 404):
            assert status == 409, answer
            # It has gone on meanwhile, or ends as one that was begun beside another.

    async def end(self):
        for server in self.servers:
            with suppress(AssertionError):
                await server.end(killed=True)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def purse(rows):
    """The budget of everybody, over these rows."""
    made = Budget(tokens=10**9)
    made.ledger = Ledger(rows)
    return made


def clerk(world, window=None):
    """An agent that does as the first word of what it was asked last says."""

    async def carry_out(context: ToolContext, amount: int, *, asked: bool) -> str:
        for _ in range(3):
            await asyncio.sleep(0)
            await _alive(context)
        call = (context.run_id, context.call_id)
        world.executed[call] += 1
        if asked:
            world.unasked += [(call, amount)] * (amount not in world.allowed.get(call, ()))
        return f"done {amount}"

    @tool(effect="write")
    async def pay(context: ToolContext, amount: int) -> str:
        """Pays an amount of money to whoever is owed it."""
        return await carry_out(context, amount, asked=True)

    @tool(effect="write")
    async def note(context: ToolContext, amount: int) -> str:
        """Writes an amount of money down in the ledger."""
        return await carry_out(context, amount, asked=False)

    @tool(effect="read")
    async def wait(context: ToolContext) -> str:
        """Waits until whatever is awaited has come."""
        for _ in range(200):
            if world.open.is_set():
                break
            await asyncio.sleep(0)
        await _alive(context)
        return "it has come"

    def turn(request):
        asked = [one for one in request.messages if one.role == "user"]
        if request.messages[-1].role != "user" or not asked:
            return f"That is all about {len(asked)}."
        word, _, amount = asked[-1].text.partition(" ")
        calls = {"pay": ("pay", {"amount": int(amount or 0)}), "note": ("note", {"amount": int(amount or 0)})}
        calls |= {"wait": ("wait", {}), "ask": ("ask", {"question": asked[-1].text})}
        return [calls[word]] if word in calls else f"{len(asked)}: {asked[-1].text}"

    return Agent(
        ScriptedModel(turn, chunk=7, keep_requests=False, usage=Usage(COST - 1, 1)), name="clerk",
        tools=[pay, note, wait, ASK], approvals=[ask_before("pay")], limits=Limits(seconds=None), watch_progress=False,
        budget=purse(world.rows if window is None else Rows(world.rows, window)),
    )  # fmt: skip


async def _alive(context):
    """A process that was killed does nothing more."""
    if context.deps is not None and context.deps.dead:
        await asyncio.Event().wait()


def _age(line):
    return line.started_at, line.run_id


def _kinds(events):
    return [(round(one.at, 6), type(one).__name__) for one in events]


def _said_to(events):
    found = []
    for event in events:
        if isinstance(event, RunStarted):
            found += [one.text for one in event.messages if isinstance(one, UserMessage)]
        elif isinstance(event, MessageAdded):
            found.append(event.message.text)
    return found


def times_said(runs, text):
    """How often a text was said, in whatever run; what was said before it is part of each run that goes on."""
    started = [[one for one in events[0].messages if isinstance(one, UserMessage)][-1:] for events in runs.values()]
    first = sum(one.text == text for said in started for one in said)
    added = [one for events in runs.values() for one in events if isinstance(one, MessageAdded)]
    return first + sum(one.message.text == text for one in added)


def said_in_pauses(events):
    """What was said to a run that waited, each with the number of the pause."""
    found = []
    for number, event in enumerate(events, 1):
        if isinstance(event, MessageAdded):
            found += [
                (at, event.message.text)
                for at, one in list(enumerate(events, 1))[: number - 1]
                if isinstance(one, RunPaused)
                and not any(isinstance(other, StepPrepared | MessageAdded) for other in events[at : number - 1])
            ][-1:]
    return found


def _only_begun(events):
    return all(isinstance(one, RunStarted | ToolsListed | RunResumed) for one in events)


def _ends_with(events):
    state = fold_all(events)
    return conversation_part(history(state, state.stop or stopped("running")))
