"""Tools of every temper for generated runs, and the record of what they did."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from biller import Ledger
from funds import as_it_stood, lasting
from journals import Recording
from texts import figures

import treadle
from treadle import (
    Budget,
    Done,
    Event,
    File,
    NotDone,
    Text,
    ToolContext,
    ToolError,
    ToolResult,
    external_tool,
    tool,
)
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ResultAwaited,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.tools.function import ToolOptions


class _ByName:
    """Stands for `treadle.Injected` where the dependencies are injected by the parameter's name."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item


Injected = getattr(treadle, "Injected", _ByName)
PARALLEL: Any = {"parallel": True} if "parallel" in ToolOptions.__annotations__ else {}


FOUND_OUT = "found out to be written"
SEEN = "saw 2"
"""What one call in some finds, which an application may take for an error."""


@dataclass
class Execution:
    """One time that a tool's function ran.

    Attributes:
        tool: its name; `run_id`, `step`, `call_id` the call that it served, `n` its argument.
        before: what the journal held of that call when it began, and `at`, how many events it held in all; of a tool
            that only reads, what it was given: it is `sure` if all of that was stored.
        beside: the write tools of the same run that were under way then.
        alive: which process it ran in; `ended` whether it came to its end there.
        said: what it returned or raised, as far as it is plain text.
        key: under which it was done.
        version: of a tool of a server, that of what the server had said of its tools; `died`, whether the server went
            away in the middle of it; `endless`, whether it never answers.
        wrote: whether its tool said then that it writes.
    """

    tool: str
    run_id: str
    step: int
    call_id: str
    n: int
    before: tuple[Event, ...] = ()
    at: int = 0
    sure: bool = True
    beside: tuple[str, ...] = ()
    alive: int = 1
    ended: bool = False
    said: str | None = None
    key: str = ""
    version: int = 0
    died: bool = False
    endless: bool = False
    wrote: bool = False

    @property
    def call(self) -> tuple[str, int, str]:
        """The call that it served."""
        return self.run_id, self.step, self.call_id


@dataclass(frozen=True)
class Asked:
    """One time that a tool was asked what came of a call that a process had left in flight.

    Attributes:
        tool: its name; `run_id`, `step`, `call_id` and `key` the call.
        answer: "done", "not done" or "unknown".
        before: what the journal held of that call, and `at`, how many events it held in all.
    """

    tool: str
    run_id: str
    step: int
    call_id: str
    key: str
    answer: str
    before: tuple[Event, ...]
    at: int


@dataclass
class World:
    """What the tools and hooks of a tree of runs did, in one process after another.

    Attributes:
        executed: every execution.
        quiet: whether hooks no longer misbehave.
        asked: every time that a tool was asked what came of a call.
        raised: which hooks misbehaved, in order; servers that are away, too.
        unseen: results that a hook was shown before the journal had them.
        players: the models, each with the process and the path of its agent.
        counts: how often each hook was called.
        budgets: what the agents of each path share, over all processes.
        ledger: what the models' providers have charged.
        forgetful: whether the agents of all processes but the first have no skills in folders.
        eased: the tools that write of which the application says by now that they may be made again.
        traces: what the runs are told to; None for nothing.
        servers: what the server of the agent of each path is by now; `contexts`, by their keys, the calls of servers.
        funds: by number, the budgets that the run at the top is given along the way.
        quotes: whether the numbers that calls are made with are texts, which a journal that redacts writes alike.
        done_by_then: how many calls and requests had been made, and events stored, when a hook held the event loop.
        overtaken: the calls that were under way when another process took their run over.
        verdicts: of which run what `on_answer` was shown, by its name, and whether it let that stand.
    """

    journal: Recording | None = None
    executed: list[Execution] = field(default_factory=list)
    in_door: int = 0
    most_in_door: int = 0
    under_way: list[Execution] = field(default_factory=list)
    beside_alone: list[str] = field(default_factory=list)
    alive: int = 1
    quiet: bool = False
    asked: list[Asked] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    players: list[tuple[int, str, Any]] = field(default_factory=list)
    counts: Counter[Any] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    budgets: dict[str, Budget] = field(default_factory=dict)
    forgetful: bool = False
    eased: frozenset[str] = frozenset()
    traces: Any = None
    servers: dict[str, Any] = field(default_factory=dict)
    contexts: dict[str, ToolContext] = field(default_factory=dict)
    funds: dict[int, Budget] = field(default_factory=dict)
    quotes: bool = False
    done_by_then: tuple[int, int, int] | None = None
    overtaken: set[tuple[str, int, str]] = field(default_factory=set)
    verdicts: list[tuple[str, str, Any, bool]] = field(default_factory=list)

    def number(self, n: int) -> int | str:
        """`n` as calls are made with it in this world."""
        return str(n) if self.quotes else n

    def hold(self, seconds: float) -> None:
        """Holds the event loop, in which nothing else happens meanwhile."""
        asyncio.get_running_loop().hold(seconds)
        self.done_by_then = len(self.executed), self.requests, self.held()

    def budget(self, path: str, tokens: int) -> Budget:
        """The budget of the agents of that path."""
        if path not in self.budgets:
            self.budgets[path] = lasting(Budget(tokens=tokens, name=path), self.held)
        return self.budgets[path]

    def fund(self, number: int, fund: Any) -> Budget:
        """The budget of that number that the run at the top is given."""
        if number not in self.funds:
            self.funds[number] = fund.budget(number, self.held)
        return self.funds[number]

    def held(self) -> int:
        """How many events the journal holds."""
        return 0 if self.journal is None else len(self.journal.order)

    @property
    def requests(self) -> int:
        """How often a model was asked."""
        return sum(len(player.requests) for _, _, player in self.players)

    def balances(self) -> list[Any]:
        """What all budgets tell."""
        every = [*self.budgets.values(), *self.funds.values()]
        return [budget.spent(key or None) for budget in every for key in budget.purses()]

    def left_by(self, other: "World", at: int, *, budgets: bool) -> None:
        """Has the budgets as a process left them that died when the journal held `at` events; its agents' own too?"""
        self.funds = {number: as_it_stood(one, at, self.held) for number, one in other.funds.items()}
        if budgets:
            self.budgets = {path: as_it_stood(one, at, self.held) for path, one in other.budgets.items()}

    def find_out(self, context: ToolContext) -> Done | NotDone:
        """What came of a call, as the other side knows it: whatever was begun under its key is done."""
        done = any(one.key == context.idempotency_key for one in self.executed)
        self.ask(context, "done" if done else "not done")
        return Done(FOUND_OUT) if done else NotDone()

    def ask(self, context: ToolContext, answer: str) -> None:
        """Remembers that it was asked about a call."""
        order, events = ([], []) if self.journal is None else (self.journal.order, self.journal.events(context.run_id))
        about = on_call(events, context.step, context.call_id)
        call = context.run_id, context.step, context.call_id
        self.asked.append(Asked(context.tool_name, *call, context.idempotency_key, answer, about, len(order)))

    @contextmanager
    def doing(self, name: str, context: ToolContext, n: int) -> Iterator[Execution]:
        """Around what the tool `name` does."""
        key = context.idempotency_key
        call = context.run_id, context.step, context.call_id
        one = Execution(
            name, *call, n, alive=self.alive, key=key, wrote=EFFECTS.get(name) == "write" and name not in self.eased
        )
        if self.journal is not None:
            one.at = len(self.journal.order)
            stored = one.before = on_call(self.journal.events(one.run_id), one.step, one.call_id)
            # What only reads may run while its start is on its way to the journal.
            if EFFECTS.get(name) == "read":
                on_its_way = on_call(self.journal.given(one.run_id), one.step, one.call_id)
                one.before = on_its_way or on_call(self.journal.refused(one.run_id), one.step, one.call_id)
            one.sure = one.before == stored
        one.beside = tuple(x.tool for x in self.under_way if x.run_id == one.run_id and x.wrote and is_write(x.tool))
        self.executed.append(one)
        self.under_way.append(one)
        try:
            yield one
        except asyncio.CancelledError as error:
            one.ended = "mine" in error.args
            raise
        except BaseException:
            one.ended = True
            raise
        else:
            one.ended = True
        finally:
            self.under_way.remove(one)


def number_of(arguments: Any) -> Any:
    """The number in the arguments of a call, however it is written; 0 for none."""
    n = arguments.get("n", 0) if isinstance(arguments, dict) else 0
    return int(n) if isinstance(n, str) and n.isdecimal() else n


OF_A_CALL = (ApprovalDecided, ApprovalRequested, ResultAwaited, ToolFinished, ToolReacted, ToolStarted)


def on_call(events: Sequence[Event], step: int, call_id: str) -> tuple[Event, ...]:
    """The events about one call."""
    return tuple(
        event for event in events if getattr(event, "call_id", None) == call_id and getattr(event, "step", None) == step
    )


def is_write(name: str) -> bool:
    """Whether the tool `name` writes, and has not said that it may do so beside others."""
    return EFFECTS.get(name) == "write" and name != "write_beside"


@tool(effect="read")
async def look(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Look."""
    with deps.doing("look", context, n) as it:
        for _ in range(3):
            await asyncio.sleep(0)
        it.said = f"saw {n}"
        return it.said


@tool(effect="read")
def look_in_thread(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> dict[str, int]:
    """Look, in a thread."""
    with deps.doing("look_in_thread", context, n):
        return {"n": n}


@tool(effect="read")
async def rows(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Look at some rows."""
    with deps.doing("rows", context, n) as it:
        it.said = figures(n)
        return it.said


@tool(effect="read")
async def heaps(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> ToolResult:
    """Give the application a lot."""
    with deps.doing("heaps", context, n):
        return ToolResult(f"a heap of {n}", for_app={"heap": "x" * 500})


@tool(effect="idempotent")
async def put(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> int:
    """Put."""
    with deps.doing("put", context, n) as it:
        await asyncio.sleep(0)
        it.said = str(n)
        return n


@tool(effect="write")
async def write(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write."""
    with deps.doing("write", context, n) as it:
        await asyncio.sleep(0)
        it.said = "written"
        return it.said


@tool(effect="write")
async def write_slowly(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write, and take a while over it."""
    with deps.doing("write_slowly", context, n) as it:
        await asyncio.sleep(2.0)
        it.said = "slowly written"
        return it.said


@tool(effect="write", **PARALLEL)
async def write_beside(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write beside others that write."""
    with deps.doing("write_beside", context, n) as it:
        await asyncio.sleep(0)
        it.said = "written beside"
        return it.said


async def _knows(context: ToolContext[World]) -> Done | NotDone | None:
    await asyncio.sleep(0)
    n = number_of(context.arguments)
    if n in (1, 2):
        context.deps.ask(context, "unknown")
        if n == 2:
            raise ConnectionError("nobody answers \udcff")
        return None
    return context.deps.find_out(context)


@tool(effect="write", reconcile=_knows)
async def write_known(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write where it is known afterwards what was written; not when n is 1 or 2."""
    with deps.doing("write_known", context, n) as it:
        await asyncio.sleep(0)
        it.said = f"known to be written {n}"
        return it.said


def _finds(context: ToolContext[World]) -> Any:
    n = number_of(context.arguments)
    if n in (1, 2, 3):
        context.deps.ask(context, "unknown")
    match n:
        case 1:
            return "written"
        case 2:
            raise SystemExit("mine")
        case 3:
            raise asyncio.CancelledError("mine")
    return context.deps.find_out(context)


@tool(effect="write", thread=False, reconcile=_finds)
def write_found(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write in the event loop where it is known afterwards what was written, when n is 0."""
    with deps.doing("write_found", context, n) as it:
        it.said = f"found to be written {n}"
        return it.said


@tool(alone=True)
async def write_alone(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> None:
    """Write with nothing beside it."""
    with deps.doing("write_alone", context, n):
        deps.beside_alone += [x.tool for x in deps.under_way if x.run_id == context.run_id and x.tool == "look"]
        await asyncio.sleep(0)
        deps.beside_alone += [x.tool for x in deps.under_way if x.run_id == context.run_id and x.tool == "look"]


@tool(resource="door")
async def through_door(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Go through a door that takes one at a time."""
    with deps.doing("through_door", context, n) as it:
        deps.in_door += 1
        deps.most_in_door = max(deps.most_in_door, deps.in_door)
        try:
            await asyncio.sleep(0)
        finally:
            deps.in_door -= 1
        it.said = "through"
        return it.said


@tool
async def fails(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Fail."""
    with deps.doing("fails", context, n) as it:
        it.said = f"cannot do {n}"
        raise ValueError(it.said)


@tool(effect="read")
async def refuses(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Say what would be right."""
    with deps.doing("refuses", context, n) as it:
        it.said = "there is no such thing"
        raise ToolError(it.said, available=["a", "b"], given=n)


@tool(effect="read", timeout=0.001)
async def too_slow(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Take too long."""
    with deps.doing("too_slow", context, n):
        await asyncio.sleep(30)
        return "never"


@tool(effect="read")
async def not_json(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> object:
    """Return what has no JSON form."""
    with deps.doing("not_json", context, n):
        return object()


@tool(effect="read")
async def odd_name(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> list[Text | File]:
    """Return a file whose name came out of `os.listdir`, and such a text."""
    with deps.doing("odd_name", context, n) as it:
        it.said = "a file called"
        return [Text("a file called \udcff"), File(data=b"1", name="caf\udce9.pdf")]


@tool(effect="write")
async def odd_error(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Fail in such words."""
    with deps.doing("odd_error", context, n) as it:
        it.said = "no file"
        raise ToolError("no file \udcff", given="\ud800")


class Abort(BaseException):
    """Neither an error nor one of Python's own ways out."""


def _exploding(name: str, error: type[BaseException], effect: Any) -> treadle.Tool:
    async def explodes(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
        with deps.doing(name, context, n):
            await asyncio.sleep(0)
            raise error("mine")

    return tool(name=name, description="Raise what tools do not raise.", effect=effect)(explodes)


def _exploding_in_thread(name: str, error: type[BaseException], effect: Any) -> treadle.Tool:
    def explodes(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
        with deps.doing(name, context, n):
            raise error("mine")

    return tool(name=name, description="Raise in a thread what tools do not raise.", effect=effect)(explodes)


cancels_itself = _exploding("cancels_itself", asyncio.CancelledError, "write")
quits = _exploding("quits", SystemExit, "write")
interrupts = _exploding("interrupts", KeyboardInterrupt, "read")
aborts = _exploding("aborts", Abort, "idempotent")
leaves = _exploding("leaves", GeneratorExit, "write")
stops = _exploding("stops", StopIteration, "read")
quits_in_thread = _exploding_in_thread("quits_in_thread", SystemExit, "write")
cancels_in_thread = _exploding_in_thread("cancels_in_thread", asyncio.CancelledError, "read")
stops_in_thread = _exploding_in_thread("stops_in_thread", StopIteration, "write")


@tool(needs_approval=True)
async def guarded(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Do what a person must agree to."""
    with deps.doing("guarded", context, n) as it:
        await asyncio.sleep(0)
        it.said = "done with leave"
        return it.said


def _cannot_say(arguments: dict[str, Any]) -> bool:
    n = number_of(arguments)
    if n == 3:
        raise asyncio.CancelledError("the predicate's own")
    return bool(1 // n)


async def _says_later(arguments: dict[str, Any]) -> bool:
    await asyncio.sleep(0)
    return bool(number_of(arguments) == 1)


@tool(needs_approval=_cannot_say, effect="read")
async def guarded_sometimes(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Do what a person must agree to when n is 0 or 3 (the question fails) or 1."""
    with deps.doing("guarded_sometimes", context, n) as it:
        it.said = "done, perhaps with leave"
        return it.said


@tool(needs_approval=_says_later)
async def guarded_later(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Do what a person must agree to when n is 1."""
    with deps.doing("guarded_later", context, n) as it:
        it.said = "done later"
        return it.said


def asks(name: str, n: int) -> bool:
    """Whether a tool says of itself that a person must agree to it."""
    if name == "guarded_sometimes":
        return n in (0, 1, 3)
    return name == "guarded" or (name == "guarded_later" and n == 1)


@tool
async def hangs(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Wait for ever."""
    with deps.doing("hangs", context, n):
        await asyncio.get_running_loop().create_future()
        return "never"


done = external_tool("done", "Give the answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})
ask = external_tool("ask", "Ask outside.", {"type": "object", "properties": {"n": {"type": "integer"}}}, wait=True)

TOOLS = (
    look, look_in_thread, rows, heaps, put, write, write_slowly, write_beside, write_alone, through_door, fails,
    write_known, write_found,
    refuses, too_slow, not_json, odd_name, odd_error, cancels_itself, quits, interrupts, aborts, leaves, stops,
    quits_in_thread, cancels_in_thread, stops_in_thread, guarded, guarded_sometimes, guarded_later, done, ask,
)  # fmt: skip
NAMES = tuple(one.name for one in TOOLS)
EFFECTS = {one.name: one.effect for one in (*TOOLS, hangs)}
EASED = {
    name: tool(name=name, effect="idempotent")(one)
    for name, one in (("write", write.function), ("write_slowly", write_slowly.function))
}
"""Tools that write, as an application says of them that has come to think that they may be made again."""

IN_THREADS = tuple(
    one.name
    for one in TOOLS
    if one.function is not None and one.thread and not inspect.iscoroutinefunction(one.function)
)
QUICK = tuple(one for one in TOOLS if one.name not in (*IN_THREADS, "too_slow", "write_slowly"))
"""Tools that need neither a thread nor a timer: a run of them takes the same turns of the event loop every time."""
