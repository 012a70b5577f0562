"""LiveRun: a run under way in the background of an `async with`, to watch, steer, pause and cancel."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from threading import get_ident
from types import TracebackType
from typing import Generic

from msgspec.structs import replace

from treadle.drivers.beginning import Begun
from treadle.drivers.checks import Input, asked_of
from treadle.drivers.drive import drive, end
from treadle.drivers.driven import ENDS_A_TASK
from treadle.drivers.lease import hold
from treadle.drivers.partial import Partial
from treadle.drivers.run import Run
from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.event_loop import running_loop
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import MessageAdded, ModelFailed, ModelReplied, RunPaused, ToolFinished, ToolReacted
from treadle.kernel.messages import Text, text_of
from treadle.kernel.stop import Stop, stopped
from treadle.misnamed import OF_STREAMS, Misnamed
from treadle.models.port import TextDelta, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.result import Output, RunResult

WITHDRAWN = "\n[The reply broke off.]\n"
"""What a stream of text says where a reply broke off."""


class Pieces:
    """Which text an event adds to what the model has said."""

    def __init__(self, withdrawn: str) -> None:
        self._withdrawn = withdrawn
        self._said = self._saying = False
        self._answered: set[tuple[str, ...]] = set()

    def of(self, event: RunEvent, path: tuple[str, ...] = ()) -> Iterator[str]:
        """The pieces of text that it adds, where the conversation was handed on along the calls of `path`."""
        match event:
            case TextDelta(text=text) if text:
                yield from self._said_now(text)
            case ModelFailed() if self._saying:
                self._saying = self._said = False
                yield self._withdrawn
            case ModelReplied(message=message, handed_in=True):
                # What the final tool was called with stands last, and came as no text.
                texts = [part.text for part in message.content if isinstance(part, Text)]
                for text in texts[-1:] if self._saying else texts:
                    self._saying = False
                    yield from self._said_now(text)
                self._saying = False
            case ModelReplied(message=message):
                if message.text and not self._saying:
                    # A model that does not stream.
                    yield from self._said_now(message.text)
                self._saying = False
            case SubRunEvent(call_id=call_id, event=said, handed_on=True):
                yield from self.of(said, (*path, call_id))
            case ToolFinished(call_id=call_id, final=True):
                self._answered.add((*path, call_id))
            case ToolReacted(call_id=call_id, action=action, content=content) if (*path, call_id) in self._answered:
                self._answered.discard((*path, call_id))
                if action == "replace" and (text := text_of(content)):
                    # It is the answer now. That of the other agent was said already.
                    yield from self._said_now(text)
                    self._saying = False

    def _said_now(self, text: str) -> Iterator[str]:
        if self._said and not self._saying:
            yield "\n\n"
        self._said = self._saying = True
        yield text


def _readable(partial: Partial, event: RunEvent, run_id: str = "") -> RunEvent | None:
    """What can be read of a call's arguments after that event, told as it was: from below where it came from below."""
    match event:
        case ToolCallStarted() | ToolCallDelta() | ToolCallCompleted():
            return partial.hear(event, run_id)
        case SubRunEvent(run_id=below, event=inner):
            readable = _readable(partial, inner, below)
            return None if readable is None else replace(event, event=readable)
    return None


class LiveRun(Misnamed, Generic[Output]):
    """A run under way. Iterate over it for its events, each of which is seen once; leaving early cancels the run.

    async with agent.stream("…") as run:
        async for event in run:
            ...
    print(run.result.text)
    """

    _other_names = OF_STREAMS

    def __init__(
        self, begin: Callable[[Callable[[RunEvent], None]], Awaitable[Begun]], *, partial_arguments: bool = False
    ) -> None:
        self._begin = begin
        self._events: deque[RunEvent] = deque()
        self._news = asyncio.Event()
        self._partial = Partial() if partial_arguments else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._group = asyncio.TaskGroup()
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._failure_told = False
        self._begun: Begun | None = None
        self._entered = False

    async def __aenter__(self) -> "LiveRun[Output]":
        if self._begun is not None:
            raise Misuse(
                f"run {self.run_id} was entered already, and a stream is entered once: call agent.stream(…) again, "
                "with resume= to go on with that run"
            )
        self._loop, self._thread = running_loop(), get_ident()
        self._begun = begun = await self._begin(self._heard)
        if begun.to_do:
            try:
                # What is said to it may come before its first turn.
                await hold(begun.run)
            except BaseException:
                begun.run.release()
                raise
        await self._group.__aenter__()
        self._task = self._group.create_task(self._drive(begun))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._driving
        if not task.done():
            task.cancel()
        # The group is told of no error, so that the one raised in the body reaches the caller as it is.
        await self._group.__aexit__(None, None, None)
        await self._settled()
        if error is None and not self._failure_told:
            self._raise_failure()

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        events = self._events
        while True:
            while events:
                yield events.popleft()
            if self._driving.done():
                break
            self._news.clear()
            await self._news.wait()
        self._raise_failure()

    async def text_stream(self, withdrawn: str = WITHDRAWN) -> AsyncIterator[str]:
        """The text that the model says, piece by piece, and nothing else; a blank line between two replies.

        What an agent says to which the conversation was handed on is part of it.

        An alternative to iterating over the run itself: each event is seen once, by one of the two.

        Args:
            withdrawn: what comes where a reply broke off after some of its text, which is then not part of the answer.
        """
        pieces = Pieces(withdrawn)
        async for event in self:
            for piece in pieces.of(event):
                yield piece

    @property
    def run_id(self) -> str:
        """The run's name in its journal."""
        return self._run.run_id

    @property
    def result(self) -> RunResult[Output]:
        """What came of the run; while it is under way, what has come of it so far."""
        return self._there.result

    async def send(self, text: Input) -> None:
        """Adds a message to the run, as `agent.run` takes it; the model is shown it at its next call.

        Raises:
            Misuse: the run has ended, is paused or has broken off, or there is nothing in the text.
        """
        said = asked_of(text, "what is said")
        if said is None:
            raise Misuse("send takes a text; it was given None")
        driving = self._driving
        # One that was cancelled before its first turn has not broken off: it ends with what was said to it.
        if self._entered and driving.done() and self._run.state.phase not in ("paused", "finished"):
            raise Misuse(f"run {self.run_id} takes no message now; it has broken off: resume it with message=")
        try:
            self._run.feed(MessageAdded(said))
        except IllegalEvent as error:
            phase = "is paused: resume it first" if self._run.state.phase == "paused" else "has ended: start another"
            raise Misuse(f"run {self.run_id} takes no message now; it {phase}") from error
        await self._run.commit()

    async def cancel(self) -> RunResult[Output]:
        """Ends the run now, whatever is in flight, and returns what was found so far.

        Raises:
            Exception: the run has broken off before, by this: code of yours, or the journal, raised it.
        """
        self._driving.cancel()
        return await self._ended()

    async def pause(self) -> RunResult[Output]:
        """Lets the step under way come to its end, then pauses the run; `agent.resume` goes on with it.

        The run may end before it could be paused; the result's stop reason tells.

        Raises:
            Misuse: it is awaited in a tool or a hook of that very step, which would never come to its end.
            Exception: as `cancel`.
        """
        if asyncio.current_task() is self._driving or self._run.at_work.is_here():
            raise Misuse(
                f"run {self.run_id} cannot be paused by a tool or a hook of its own: the pause waits for the step, and "
                "that for the tool. Let another task ask for it: asyncio.create_task(run.pause())"
            )
        self._run.pause_wanted = RunPaused(Stop("waiting", "paused by the caller", "Resume the run."))
        return await self._ended()

    async def _ended(self) -> RunResult[Output]:
        await asyncio.wait([self._driving])
        await self._settled()
        self._raise_failure()
        return self.result

    def _raise_failure(self) -> None:
        """What broke the run off is raised as often as somebody asks: a result would tell of a run under way."""
        if self._failure is not None:
            self._failure_told = True
            raise self._failure

    def _heard(self, event: RunEvent) -> None:
        self._events.append(event)
        readable = None if self._partial is None else _readable(self._partial, event)
        if readable is not None:
            self._events.append(readable)
        if get_ident() == self._thread:
            self._news.set()
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)

    async def _drive(self, begun: Begun) -> None:
        self._entered = True
        try:
            if begun.to_do:
                await drive(begun.run)
        except asyncio.CancelledError:
            pass
        except ENDS_A_TASK:
            raise
        except BaseException as error:
            # A group would wrap it.
            self._failure = error
        finally:
            begun.run.release()
            self._news.set()

    async def _settled(self) -> None:
        """A task that is cancelled before its first turn never ran its own clean-up."""
        if not self._entered:
            self._entered = True
            try:
                if self._there.to_do:
                    await end(self._run, stopped("cancelled"))
            finally:
                self._run.let_go()
                self._run.release()
                self._news.set()

    @property
    def _driving(self) -> "asyncio.Task[None]":
        if self._task is None:
            raise Misuse("agent.stream(…) is an async context manager: async with agent.stream(…) as run: …")
        if running_loop() is not self._loop:
            # Its task would not wake another loop, which would wait for ever.
            raise Misuse(
                f"run {self.run_id} belongs to the event loop in which it was entered: ask for it there, from another "
                "thread by asyncio.run_coroutine_threadsafe(run.cancel(), loop).result()"
            )
        return self._task

    @property
    def _run(self) -> Run:
        return self._there.run

    @property
    def _there(self) -> Begun:
        if self._begun is None:
            raise Misuse("agent.stream(…) is an async context manager: async with agent.stream(…) as run: …")
        return self._begun
