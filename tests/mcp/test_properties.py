"""Generated runs with a server of tools that changes, fails, goes away and is taken up in another process.

The server is the port that MCP servers stand behind (`treadle.tools.server`), in this process, so that many runs can be
tried.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Agent, Limits, MemoryJournal, allow, ask_before, fold
from treadle.kernel.errors import PassesThrough
from treadle.kernel.events import ToolsListed, ToolStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import ListedTool, ToolSpec
from treadle.testing import ScriptedModel
from treadle.tools import Tool, ToolError
from treadle.tools.arguments import from_json_schema
from treadle.tools.errors import OutcomeUnknown
from treadle.tools.server import ServerFailed

EFFECTS = {"r": "read", "i": "idempotent", "w": "write", "v": "write"}
HAPPENS = ("well", "well", "fails", "gone", "change", "loses", "dies")
CONTEXT = "\0context"


@dataclass
class Outside:
    """What outlives the processes: what was done, and what the server has."""

    happens: list[str]
    made: list[tuple[str, str, str]] = field(default_factory=list)
    version: int = 0
    lost: frozenset[str] = frozenset()
    down: bool = False


class Killed(PassesThrough):
    """The process is gone."""


class Server:
    """One process's view of a server; `first` is what it said of each tool when it was first asked."""

    name = "s"

    def __init__(self, outside):
        self.outside = outside

    async def listed(self, known, first):
        if self.outside.down:
            if known:
                return known
            raise ServerFailed("down")
        before = {one.remote: one for one in first}
        found = []
        for remote, effect in EFFECTS.items():
            if remote in self.outside.lost:
                continue
            digest = f"{self.outside.version if remote == 'v' else 0}"
            old = before.get(remote)
            changed = "" if old is None or (old.digest == digest and not old.changed) else "it says something else"
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            words = f"Does {remote} {digest}."
            found.append(ListedTool(f"s__{remote}", "s", remote, words, schema, None, effect, True, digest, changed))
        return found

    def tool(self, listed):
        async def call(**given):
            context = given.pop(CONTEXT)
            outside = self.outside
            outside.made.append((listed.remote, context.idempotency_key, listed.changed))
            await asyncio.sleep(0)
            match outside.happens.pop(0) if outside.happens else "well":
                case "fails":
                    raise ToolError("no")
                case "gone":
                    raise OutcomeUnknown("it went away")
                case "change":
                    outside.version += 1
                case "loses":
                    outside.lost |= {listed.remote}
                case "dies":
                    raise Killed
            return f"{listed.remote} {given}"

        return Tool(
            spec=ToolSpec(listed.name, listed.description, listed.input_schema),
            arguments=from_json_schema(listed.name, listed.input_schema, None, ""),
            function=call,
            is_async=True,
            injected=((CONTEXT, "context"),),
            effect=listed.effect,
            says_effect=True,
            suspect=listed.changed,
        )

    @asynccontextmanager
    async def held(self):
        yield


NAMES = st.sampled_from(["s__r", "s__i", "s__w", "s__v", "s__x"])
calls = st.lists(
    st.tuples(NAMES, st.sampled_from([{"n": 1}, {"n": 2}, {"m": 1}])),
    min_size=1,
    max_size=3,
)  # fmt: skip
says = st.sampled_from(["approve", "deny"])


async def to_its_end(script, happens, rule, interrupted, decisions):
    journal, outside = MemoryJournal(), Outside(list(happens))

    def turns(request):
        return script[request.step] if request.step < len(script) else "done"

    def process():
        rules = [ask_before("s__i")] if rule else [allow("s__v")]
        return Agent(
            ScriptedModel(turns), tools=[Server(outside)], approvals=rules, journal=journal,
            on_interrupted=interrupted, limits=Limits(steps=8, tool_calls=12), watch_progress=False,
        )  # fmt: skip

    run_id, result = None, None
    for decision in [*decisions, *["deny"] * 40]:
        agent = process()
        try:
            if run_id is None:
                result = await agent.run("go")
            elif result is None:
                result = await agent.resume(run_id, takeover=True)
            elif result.pending:
                pending = result.pending
                given = {"approve": pending} if decision == "approve" else {"deny": pending}
                result = None
                result = await agent.resume(run_id, **given)
            else:
                break
        except Killed:
            result = None
        run_id = run_id or (await journal.list(1))[0].run_id
    return journal, outside, result, process()


def check(events, outside, result):
    state = fold_all(events)
    assert result is not None
    assert state.phase == "finished"
    for step in state.steps:
        for record in step.calls:
            assert record.result is not None
    messages = list(state.messages)
    answered = [one.call_id for one in messages if one.role == "tool"]
    asked = [call.id for one in messages if one.role == "assistant" for call in one.calls]
    assert answered == asked
    # A tool is called by what the run has of it, which was recorded before.
    known, at = set(), None
    for event in events:
        at = fold(at, event) if at is not None else fold_all([event])
        if isinstance(event, ToolsListed):
            known = {one.name for one in event.listed}
        if isinstance(event, ToolStarted):
            found = at.step.calls.find(event.call_id) if at.step else None
            assert (event.name or found.doing.name) in known


@settings(max_examples=deep(150))
@given(
    st.lists(calls, min_size=1, max_size=4),
    st.lists(st.sampled_from(HAPPENS), max_size=8),
    st.booleans(),
    st.sampled_from(["ask", "tell"]),
    st.lists(says, max_size=12),
)
def test_whatever_a_server_does_the_run_keeps_its_promises(script, happens, rule, interrupted, decisions):
    journal, outside, result, agent = asyncio.run(to_its_end(script, happens, rule, interrupted, decisions))
    events = asyncio.run(journal.read(result.run_id))
    check(events, outside, result)
    # What writes is made once, unless a person has it made again, and what was changed after a person has looked.
    approved = sum(event.approved for event in events if type(event).__name__ == "ApprovalDecided")
    writes = [key for remote, key, _ in outside.made if EFFECTS[remote] == "write"]
    assert len(writes) - len(set(writes)) <= approved
    assert sum(bool(changed) for *_, changed in outside.made) <= approved
    # It is replayed without the server.
    outside.down = True
    replay = asyncio.run(agent.replay(result.run_id))
    assert replay.same, str(replay)
