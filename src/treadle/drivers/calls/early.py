"""Early: read-only tool calls that start as soon as their arguments are complete, while the reply is still arriving.

A call is started once the model's stream waits for more: a reply that is there at once has nothing to gain. What was
started stands in the journal, so that a reply which breaks off and is asked for again does not run it twice. What the
application makes of a result is asked when the reply is in, by the same door as for any other call.

Early calls count, also those of a reply that is withdrawn. So they only start while more than twice as many calls are
left as would then have begun: the reply that stands can still make its own.
"""

import asyncio
from collections.abc import Collection

from msgspec.structs import replace

from treadle.context.storable import storable_text
from treadle.drivers.calls.admission import Admitted, check, ruled
from treadle.drivers.calls.execution import executed
from treadle.drivers.commit import hand_over
from treadle.drivers.driven import cancelled_itself
from treadle.drivers.purse.claims import calls_allowed, one_call_more
from treadle.drivers.run import Run
from treadle.journal import JournalError
from treadle.kernel.calls import CallRecord, same_call
from treadle.kernel.events import ResultAwaited, ToolFinished, ToolStarted
from treadle.kernel.messages import ToolCall
from treadle.models.port import ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.tools import Tool, ToolError, encode_error

MOST = 64
"""Calls that one reply starts early; a larger batch gains nothing more by it."""


class Early:
    """The early calls of a run's step under way; their tasks live in the run's task group.

    Attributes:
        failure: what a journal that failed raised in one of them.
    """

    __slots__ = ("_asks", "_calls", "_due", "_group", "_heard", "_run", "_seen", "_stopped", "_tasks", "failure")

    def __init__(self, run: Run, group: asyncio.TaskGroup) -> None:
        self._run, self._group = run, group
        self._stopped = False
        self._heard: list[ToolCallStarted | ToolCallDelta | ToolCallCompleted] = []
        self._calls: dict[str, tuple[str, list[str]]] = {}
        self._seen: set[str] = set()
        self._due: asyncio.Handle | None = None
        self._asks: set[str] = set()
        self._tasks: dict[asyncio.Task[None], ToolCall] = {}
        self.failure: Exception | None = None

    def hear(self, event: ToolCallStarted | ToolCallDelta | ToolCallCompleted) -> None:
        """Takes note of a piece of the reply; looked at once the stream waits, if it has completed a call by then.

        Raises:
            JournalError: one of the calls could not be recorded. The rest of the reply could not be either.
        """
        if isinstance(self.failure, JournalError):
            raise self.failure
        self._heard.append(event)
        if self._due is None and type(event) is ToolCallCompleted:
            self._due = asyncio.get_running_loop().call_soon(self._catch_up)

    def replied(self) -> None:
        """The reply is in, or will not come: nothing more of it starts early."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._heard.clear()
        self._calls.clear()
        self._seen.clear()

    def _catch_up(self) -> None:
        self._due = None
        for event in self._heard:
            if isinstance(event, ToolCallStarted):
                # A call whose id is not its own gets another when the reply is in, and begins only then.
                if event.id not in self._seen and self._run.asking.is_new(storable_text(event.id)):
                    self._calls[event.id] = (event.name, [])
                self._seen.add(event.id)
            elif event.id in self._calls:
                name, pieces = self._calls[event.id]
                if isinstance(event, ToolCallDelta):
                    pieces.append(event.json)
                else:
                    del self._calls[event.id]
                    call = ToolCall(storable_text(event.id), storable_text(name), storable_text("".join(pieces)))
                    self._start(call)
        self._heard.clear()

    def _start(self, call: ToolCall) -> None:
        """Starts `call`, unless the reply is in by now, it was started before, or it is not allowed."""
        run, state = self._run, self._run.state
        if state.phase != "prepared" or call.name in self._asks:
            return
        begun = state.early
        if len(begun) >= MOST or any(
            one.call.id == call.id or (not one.stale and same_call(one.call, call)) for one in begun
        ):
            return
        left = calls_allowed(run)
        if left is not None and left <= len(begun) + 2:
            return
        if not _may_start_early(run, call):
            return
        admitted = check(run, CallRecord(call))
        if isinstance(admitted, Admitted):
            step = len(state.steps)
            run.feed(ToolStarted(step, call.id, call.name, call.arguments))
            one_call_more(run)
            task = self._group.create_task(self._finish(admitted, step))
            self._tasks[task] = call
            task.add_done_callback(self._tasks.pop)

    async def _finish(self, admitted: Admitted, step: int) -> None:
        run = self._run
        run.at_work.here()
        try:
            await hand_over(run)
            event, _ = await executed(run, admitted)
            call_id = None if self._stopped else self._open_id(admitted.record.call, step)
            if call_id is None:
                return
            if isinstance(event, ResultAwaited):
                self._asks.add(admitted.tool.name)
                words = f"{admitted.tool.name} asks the person, and cannot while the reply arrives: call it again"
                event = ToolFinished(step, call_id, encode_error(ToolError(words)).content, True)
            elif isinstance(event, ToolFinished):
                event = replace(event, call_id=call_id, provisional=bool(run.config.on_tool_result))
            run.feed(event)
            await hand_over(run)
        except asyncio.CancelledError as error:
            if self._stopped or self._open_id(admitted.record.call, step) is None:
                raise
            self.failure = cancelled_itself("a function of the application's", error)
        except Exception as error:
            self.failure = error

    def _open_id(self, call: ToolCall, step: int) -> str | None:
        """The id under which the result of `call` is wanted: its own, or that of the reply that asked for it again."""
        state = self._run.state
        if len(state.steps) != step:
            return None
        if state.phase == "prepared":
            return call.id
        records = () if state.step is None else state.step.calls
        began = (record.id for record in records if record.status == "started" and record.began_as == call.id)
        return next(began, None)

    async def settle(self) -> bool:
        """Waits until one of the calls under way is done; False if none is. Those that nobody wants are cancelled.

        Raises:
            JournalError: one of them could not be recorded.
        """
        wanted = self._wanted()
        for task in self._tasks:
            if task not in wanted:
                task.cancel()
        if not self._tasks:
            return False
        if self._run.state.phase not in ("paused", "finished"):
            # What came back of the other calls; an end is written when nothing of it can be cut off any more.
            await hand_over(self._run)
        if self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if self.failure is not None:
            raise self.failure
        return True

    def _wanted(self) -> "list[asyncio.Task[None]]":
        """The tasks whose result the reply that stands waits for."""
        state = self._run.state
        records = () if state.step is None else state.step.calls
        open_ids = {record.began_as for record in records if record.status == "started"}
        return [task for task, call in self._tasks.items() if call.id in open_ids]

    async def come_back(self) -> None:
        """Waits until all that is under way and wanted is done: it is recorded, and not cut off in the middle."""
        if wanted := self._wanted():
            await asyncio.wait(wanted)

    def stop(self) -> None:
        """Cancels whatever is still under way, and starts nothing more."""
        self.replied()
        self._stopped = True
        for task in self._tasks:
            task.cancel()


def any_may_start_early(tools: Collection[Tool], *, more: bool) -> bool:
    """Whether an agent with these tools has any for it; none may start beside a tool that asks to run alone.

    With `more` there are others besides, which are not known yet.
    """
    return (more or any(_is_free(tool) for tool in tools)) and not any(tool.alone for tool in tools)


def _may_start_early(run: Run, call: ToolCall) -> bool:
    """Whether `call` may start before its reply has ended: it only reads, asks for nothing, and is surely whole.

    A reply that is cut off right after a tool's name has no arguments, which is not to say that there are none.
    """
    tool = run.config.tools.get(call.name)
    if tool is None or ruled(run, tool):
        return False
    return _is_free(tool) and call.arguments.rstrip().endswith("}")


def _is_free(tool: Tool) -> bool:
    external = tool.external or tool.agent is not None
    return tool.effect == "read" and not (tool.needs_approval or external or tool.alone or tool.resource)
