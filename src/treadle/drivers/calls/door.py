"""The door: every tool call goes through it, whoever asked for it: a reply, a reaction, a decision, a person's hand.

    admit    known? offered? valid?                                admission.py
             with other arguments, where the application says so   change.py
             allowed by the rules?                                 admission.py
             cut off by a crash: what came of it?                  recovery.py
    start    journaled before the effect
    run      a function, or a run below                            execution.py
    record   journaled as it comes back, whichever comes first
    react    what the application makes of it                      reaction.py

Calls of one reply that only read, or may be repeated, run together; those that write run one after the other, in call
order, unless their tool says `parallel=True`; a tool that is `alone` runs with nothing beside it. A function of the
application's that raises ends the run where it can be taken up again: what is under way comes back first and is
recorded, and nothing more is started.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from treadle.drivers.below import below_of
from treadle.drivers.calls.admission import (
    Admitted,
    allowed,
    beyond_limit,
    check,
    is_to_begin,
    may_begin,
    ruled,
)
from treadle.drivers.calls.change import change_of, is_to_be_changed
from treadle.drivers.calls.execution import executed, lock_of
from treadle.drivers.calls.made import MadeCalls
from treadle.drivers.calls.reaction import Retry, reacted, reaction_of
from treadle.drivers.calls.recovery import asks_its_tool, reconciled
from treadle.drivers.calls.subrun import begun_below, cut_short, is_orphan, left_below
from treadle.drivers.calls.waves import lanes, takes_turns, waves
from treadle.drivers.commit import hand_over, hand_over_soon
from treadle.drivers.driven import ENDS_A_TASK, cancelled_itself
from treadle.drivers.purse.claims import calls_allowed, give_back, settle
from treadle.drivers.run import Run
from treadle.journal import JournalError
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import PassesThrough
from treadle.kernel.events import Event, ResultAwaited, ToolFinished, ToolReacted, ToolStarted
from treadle.tools import Tool, ToolOutput

T = TypeVar("T")


async def act(run: Run, records: Sequence[CallRecord], *, goes_on: bool = False) -> None:
    """Carries `records`, calls of the step under way, as far as they go.

    Args:
        run: the run.
        records: its calls.
        goes_on: whether whoever calls goes on at once, so that the result of a single call may be handed over together
            with the step that follows.

    Raises:
        JournalError: the journal failed; whatever was under way was cancelled.
        Exception: a function of the application's raised it; all that was under way is recorded.
    """
    if not run.begun and any([record.status != "asked" for record in records]):
        run.begun = await begun_below(run, records)
    batch = Batch(run, leaves=goes_on and len(records) == 1)
    for wave in waves(run, records) if len(records) > 1 else (records,):
        if not run.driven.goes_on():
            await run.driven.heed()
        if len(wave) == 1:
            await batch.one(wave[0])
        else:
            await batch.together(wave)
        if batch.failure is not None:
            await run.commit()
            raise batch.failure
    if run.begun:
        for child in run.begun.values():
            give_back(child)
        run.begun = {}


class Batch:
    """Calls of one reply on their way through the door.

    Args:
        run: whose they are.
        leaves: whether it leaves a result to be handed over by whoever goes on.

    Attributes:
        failure: what a function of the application's raised.
    """

    __slots__ = ("_broken", "_free", "_leaves", "_made", "_run", "_seen", "_tasks", "failure")

    def __init__(self, run: Run, *, leaves: bool) -> None:
        self._run = run
        self._leaves = leaves
        self._made: MadeCalls | None = None
        self._free = may_begin(run)
        self._seen: dict[str, ToolOutput] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._broken: BaseException | None = None
        self.failure: BaseException | None = None

    async def one(self, record: CallRecord) -> None:
        """A call with nothing beside it; what it shares with others it waits for before it starts."""
        admitted = await self._admit(record)
        if admitted is not None:
            resource = admitted.tool.resource
            if resource is None:
                await self._carry(admitted)
            else:
                async with lock_of(resource):
                    await self._carry(admitted)
        if self._run.config.on_tool_result:
            await self._react(record.id)

    async def together(self, records: Sequence[CallRecord]) -> None:
        """Calls that run at the same time, and those among them that wait for their turn."""
        at_once: list[Admitted] = []
        in_turn: list[CallRecord] = []
        back: list[CallRecord] = []
        for record in records:
            if takes_turns(self._tool(record)):
                in_turn.append(record)
            elif (admitted := await self._admit(record)) is not None:
                await self._run.driven.in_time()
                at_once.append(admitted)
            else:
                back.append(record)
        if self.failure is not None:
            return
        if at_once:
            await self._run.driven.in_time()
        # Only now, as what lets the others in takes its time: what has begun is made, or nobody knows what it did.
        for one in at_once:
            self._begin(one)
        await _start(self._run, at_once)
        # A coroutine that is made here would never be awaited where its task is cancelled before its first turn.
        work = [partial(self._back, one.record.id, one) for one in at_once]
        work += [partial(self._back, record.id) for record in back]
        work += [partial(self._turns, lane) for lane in lanes(in_turn, self._tool)]
        try:
            async with asyncio.TaskGroup() as group:
                self._tasks = [group.create_task(self._held(each)) for each in work]
        except asyncio.CancelledError:
            if self._broken is None:
                raise
        if self._broken is not None:
            raise self._broken

    async def _held(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`work`, of which nobody may think that it is done when what it ran has cancelled its task."""
        self._run.at_work.here()
        try:
            await work()
        except asyncio.CancelledError as error:
            if self._run.driven.is_cancelled():
                raise
            self.failure = self.failure or cancelled_itself("a function of the application's", error)
        except (*ENDS_A_TASK, GeneratorExit):
            raise
        except BaseException as error:
            self._cut_off(error)

    def _cut_off(self, error: BaseException) -> None:
        """Ends those beside a call that nobody may go on after. The group is not told: before Python 3.13 it leaves
        whoever waits for it with a cancellation that nobody asked for."""
        if self._broken is not None:
            return
        self._broken, driven = error, self._run.driven
        # Nobody has cancelled them where the journal failed: their runs are to be taken up again.
        driven.given_up = driven.given_up or isinstance(error, JournalError)
        driven.told = True
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _tool(self, record: CallRecord) -> Tool | None:
        return self._run.config.tools.get(record.doing.name)

    async def _turns(self, records: Sequence[CallRecord]) -> None:
        for record in records:
            if self.failure is None:
                await self._run.driven.heed()
                await self.one(record)

    async def _back(self, call_id: str, started: Admitted | None = None) -> None:
        if started is not None:
            await self._carry(started, begun=True)
        await self._react(call_id)

    async def _admit(self, record: CallRecord) -> Admitted | None:
        """The call, if it may be run; else what became of it is recorded."""
        run = self._run
        if record.status == "returned" or self.failure is not None:
            return None
        if self._free is not None and is_to_begin(record):
            if self._free <= 0:
                run.feed(beyond_limit(run, record))
                return None
            self._free -= 1
        found = check(run, record) if record.status == "asked" else await self._gone_on_with(record)
        if isinstance(found, Admitted) and run.config.on_tool_call and is_to_be_changed(record):
            found = await self._kept(self._changed(found))
        if isinstance(found, Admitted) and ruled(run, found.tool):
            self._made = self._made or MadeCalls(run)
            found = await self._kept(allowed(run, found, self._made))
        if found is None:
            return None
        if isinstance(found, Admitted):
            if self._made is not None:
                self._made.let_in(found.record)
            if not found.tool.external:
                return found
            run.feed(ResultAwaited(len(run.state.steps), record.id, found.tool.wait))
            return None
        if isinstance(found, (ToolFinished, ToolReacted)):
            spent = await left_below(run, record)
            if isinstance(found, ToolFinished):
                found = replace(found, spent=spent)
            elif spent is not None:
                found = cut_short(run, record, spent)
        run.feed(found)
        return None

    async def _gone_on_with(self, record: CallRecord) -> Admitted | Event | None:
        """A call that a process was at before, or a person was asked about; None where its run below is ended."""
        run = self._run
        if run.begun and is_orphan(run, record):
            # Whatever has the name now is not what it was asked of.
            run.feed(cut_short(run, record, await left_below(run, record)))
            return None
        asked = asks_its_tool(run, record)
        if asked is None:
            return check(run, record)
        found, output = await reconciled(run, record, asked)
        if output is not None and run.config.on_tool_result:
            self._seen[record.call.id] = output
        return found

    async def _kept(self, work: Awaitable[T]) -> T | None:
        """What `work` gives; None where a function of the application's raised in it, which is kept until all that is
        under way is back."""
        try:
            return await work
        except (PassesThrough, *ENDS_A_TASK, GeneratorExit):
            raise
        except BaseException as error:
            self.failure = error
            return None

    async def _changed(self, admitted: Admitted) -> Admitted | Event:
        """The call with the arguments that the application gives it, checked again."""
        run, call_id = self._run, admitted.record.id
        await run.commit()
        text = await change_of(run.config.on_tool_call, admitted.record, admitted.tool, run.driven.own)
        if text is None:
            return admitted
        run.feed(ToolReacted(len(run.state.steps), call_id, "change", arguments=text))
        record = None if run.state.step is None else run.state.step.calls.find(call_id)
        return admitted if record is None else check(run, record)

    def _begin(self, admitted: Admitted) -> None:
        run, record = self._run, admitted.record
        writes = admitted.tool.effect == "write"
        run.feed(ToolStarted(len(run.state.steps), record.call.id, writes=writes, at=run.clock.now()))

    async def _carry(self, admitted: Admitted, *, begun: bool = False) -> None:
        """Starts one call, unless it has `begun`, runs it, and records how it came back."""
        run, call_id = self._run, admitted.record.call.id
        if run.driven.is_late():
            await run.driven.in_time()
        if not begun:
            if self.failure is not None:
                # A function raised while this call waited for its rules, or for what it shares with others.
                return
            self._begin(admitted)
            if run.writes:
                await _start(run, (admitted,))
        done = await self._kept(executed(run, admitted, run.begun.pop(call_id, None)))
        if done is None:
            # A run below ended on a function of the application's: the call is taken up again with it.
            return
        event, output = done
        if isinstance(event, ToolFinished) and run.config.on_tool_result:
            event = replace(event, provisional=True)
            self._seen[call_id] = output
        run.feed(event)
        run.below.pop(call_id, None)
        settle(run)
        if run.writes and not self._leaves:
            # What was done is in doubt until it is stored; what was read is read again.
            await (hand_over_soon(run) if _only_reads(admitted.tool) else hand_over(run))

    async def _react(self, call_id: str) -> None:
        """Asks the application about a result that is recorded.

        A call that it wants in its place is admitted when all that is under way is back: it may have to run alone.
        """
        run = self._run
        record = _returned(run, call_id) if run.config.on_tool_result else None
        if record is None or self.failure is not None:
            return
        await run.commit()
        delay = await self._kept(self._reacted(record))
        if delay is None:
            return
        settle(run)
        await run.commit()
        if delay:
            await asyncio.sleep(delay)

    async def _reacted(self, record: CallRecord) -> float:
        """Records what the application makes of a result; the seconds until a call that it wants is made."""
        run, tools = self._run, self._run.config.tools
        output = self._seen.pop(record.id, None) or _output_of(record)
        reaction = await reaction_of(run.config.on_tool_result, record, output, tools, run.driven.own)
        event = reacted(len(run.state.steps), record, reaction, tools, calls_allowed(run), _repeatable)
        run.feed(event)
        again = isinstance(event, ToolReacted) and event.call is not None
        return reaction.delay if again and isinstance(reaction, Retry) else 0.0


async def _start(run: Run, calls: Sequence[Admitted]) -> None:
    """Records that `calls` start. What they may do that cannot be taken back waits until that is written."""
    if all(_only_reads(call.tool) for call in calls):
        await hand_over(run)
    else:
        await run.commit()


def _only_reads(tool: Tool) -> bool:
    return tool.effect == "read" and tool.agent is None


def _returned(run: Run, call_id: str) -> CallRecord | None:
    """The record of a call of the step under way, if it is back and the application is to be asked about its result."""
    step = run.state.step
    record = None if step is None else step.calls.find(call_id)
    return record if record is not None and record.status == "returned" else None


def _output_of(record: CallRecord) -> ToolOutput:
    """A result as it was recorded, for a process that did not see the tool return it."""
    found = record.found
    return ToolOutput("") if found is None else ToolOutput(found.content, found.is_error, record.app)


def _repeatable(tool: Tool) -> bool:
    """Whether a second call does nothing twice: neither the tool writes, nor one of the agent's that works on it.

    What its servers have is known to its runs only, which may have been told other things each time.
    """
    below = below_of(tool)
    if below is not None:
        return not below.config.servers and all(map(_repeatable, below.config.tools.values()))
    return tool.effect != "write"
