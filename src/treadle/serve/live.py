"""Live: the runs that this process drives, and the clients that follow runs, each in a task of the app's lifespan.

A run is driven by a task of its own and of no request: a client that goes away changes nothing. A run that waits for a
person has no task; nor has a run that nobody here drives and nobody follows.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from treadle.drivers.beginning import Begun
from treadle.drivers.dispatch import Pausing
from treadle.drivers.drive import drive
from treadle.drivers.lease import hold
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.run import Run
from treadle.drivers.watching import RunEvent
from treadle.event_loop import running_loop
from treadle.journal import Journal, JournalConflict, JournalError
from treadle.kernel.stop import Stop, counted
from treadle.serve.feed import Feed, Hearing, Numbered, Piece, stopped_in_the_middle
from treadle.serve.refused import Refused
from treadle.tools.raised import Redact, log_raised, redacted_text
from treadle.tools.server import ServerFailed

log = logging.getLogger("treadle.serve")

Begin = Callable[[Callable[[RunEvent], None]], Awaitable[Begun]]
"""Begins a run, or takes one up, to be watched by a function."""

STOPPED: Final = Stop("waiting", "the server was stopped", "It goes on when the server is back, or when it is resumed.")
"""Why a run waits that was under way when the server was told to stop."""

_TOLD: Final = (JournalError, BudgetUnavailable, ServerFailed)
"""Errors of what a run needs, in words of our own."""

_MOMENT: Final = 5.0
"""Seconds that a run that has paused may take to be let go."""

_MOST_BROKEN: Final = 1000
"""Runs that are known to have been stopped in the middle."""


class Carried:
    """A run that is carried out here.

    Attributes:
        run: the run.
        hearing: what it tells.
        task: in which it is driven.
    """

    def __init__(self, run: Run, hearing: Hearing, task: "asyncio.Task[Any]") -> None:
        self.run, self.hearing, self.task = run, hearing, task
        self.over = asyncio.Event()
        # What cancels the task without a word, as the end of its event loop does, leaves the run to be gone on with.
        run.driven.given_up = True

    def cancel(self, stop: Stop) -> None:
        """Ends the run, for a reason that somebody has."""
        self.run.driven.given_up, self.run.driven.cancelled_as = False, stop
        self.task.cancel()


class Live:
    """The runs that are driven here, and the feeds of those that are followed.

    Args:
        journal: where all of them are.
        runs: how many runs are driven here at once, at most.
        grace: seconds that steps under way have to end when the server stops.
    """

    def __init__(self, journal: Journal, *, runs: int, grace: float) -> None:
        self._journal, self._most, self._grace = journal, runs, grace
        self._redact: Redact | None = getattr(journal, "redact", None)
        self._shows_pieces = self._redact is None
        self._group: asyncio.TaskGroup | None = None
        self._driven: dict[str, Carried] = {}
        # After which of their events runs were stopped in the middle here, as far as is known.
        self._broken: dict[str, range] = {}
        self._beginning = 0
        self._feeds: dict[str, tuple[Feed, asyncio.Task[None]]] = {}
        self._pausing = Pausing(STOPPED)
        self._stopping = False
        # Whether nothing is waited for; and how long steps under way are, while they are.
        self._hurried = False
        self._patience: asyncio.Timeout | None = None
        self._told_at = 0.0

    @asynccontextmanager
    async def running(self, first: Callable[[], Awaitable[None]] | None = None) -> AsyncIterator[None]:
        """Drives runs and feeds clients from here on; at its end each run pauses, to be gone on with later.

        Args:
            first: done beside everything else, once, such as to take up what was left.

        Raises:
            Misuse: the web server runs on another event loop than asyncio's.
        """
        running_loop()
        if self._group is not None:
            raise RuntimeError("this app is running already: one lifespan at a time")
        self._stopping, self._hurried, self._pausing = False, False, Pausing(STOPPED)
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                task = None if first is None else group.create_task(self._once(first))
                try:
                    yield
                except Exception as error:
                    # Raised below, outside the group, which would wrap it.
                    failure = error
                finally:
                    if task is not None:
                        task.cancel()
                    await self._stop()
        finally:
            self._group = None
        if failure is not None:
            raise failure

    async def _once(self, first: Callable[[], Awaitable[None]]) -> None:
        try:
            await first()
        except Exception as error:
            # The server is of use without it.
            what = "runs that were left could not be taken up; resume them by hand"
            log_raised(what, error, self._redact, level=logging.ERROR, log=log)

    def stop_streams(self) -> None:
        """Ends what clients read, and has runs pause after the step under way: the server is about to stop."""
        if not self._stopping:
            self._stopping, self._told_at = True, time.monotonic()
        self._pausing.pause()
        for feed, _ in self._feeds.values():
            feed.close()

    def hurry(self) -> None:
        """Waits no more for steps under way, now or when it comes to that."""
        self._hurried = True
        if self._patience is not None:
            self._patience.reschedule(0.0)

    async def _stop(self) -> None:
        self.stop_streams()
        overs = [one.over for one in self._driven.values()]
        # Steps have had time since it was told to stop: requests were waited for meanwhile.
        left = max(0.0, self._told_at + self._grace - time.monotonic())
        try:
            async with asyncio.timeout(0.0 if self._hurried else left) as self._patience:
                for over in overs:
                    await over.wait()
        except TimeoutError:
            log.warning("left in the middle of a step, to go on when taken up: %s", counted(len(self._driven), "run"))
        self._patience = None
        # Those are left as if this process had died: what is recorded of them is valid and can be gone on with.
        self._pausing.give_up()
        for _, task in self._feeds.values():
            task.cancel()

    @property
    def stopping(self) -> bool:
        """Whether the server was told to stop."""
        return self._stopping

    @property
    def driven(self) -> Mapping[str, Carried]:
        """The runs that are driven here."""
        return self._driven

    async def settled(self, run_id: str) -> None:
        """Waits until a run that has paused, or ended, is let go here: that is told a moment before."""
        driven = self._driven.get(run_id)
        if driven is not None and driven.run.state.phase in ("paused", "finished"):
            with suppress(TimeoutError):
                await asyncio.wait_for(driven.over.wait(), _MOMENT)

    async def carry(self, begin: Begin, look: Callable[[str], Awaitable[None]] | None = None) -> str:
        """Begins a run, or takes one up, and drives it in a task of its own: its id, once that stands in the journal.

        Args:
            begin: begins it.
            look: given its id when that stands in the journal, before anything is done for it.

        Raises:
            Refused: the server is stopping, or as many runs are under way as may.
            Exception: what `begin` and `look` raise; nothing is driven then.
        """
        if self._group is None:
            raise Refused(
                "unavailable",
                "the server has not started",
                "An app that is mounted in another needs that one to run its lifespan: lifespan=agents.lifespan.",
            )
        if self._stopping:
            raise Refused("unavailable", "the server is stopping", "Try again in a moment.", 5)
        if len(self._driven) + self._beginning >= self._most:
            raise Refused("too_many", "as many runs are under way here as may be", "Try again later.", 5)
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # Whoever asked may be gone by then.
        begun.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._beginning += 1
        self._group.create_task(self._carry(begin, look, begun))
        return await asyncio.shield(begun)

    async def _carry(
        self, begin: Begin, look: Callable[[str], Awaitable[None]] | None, told: "asyncio.Future[str]"
    ) -> None:
        hearing, run, driven = Hearing(), None, None
        counted = True
        try:
            begun = await begin(hearing.hear)
            run, hearing.base = begun.run, len(begun.earlier)
            if begun.to_do:
                await hold(run)
                await run.commit()
                if look is not None:
                    await look(run.run_id)
                task = asyncio.current_task()
                assert task is not None  # noqa: S101 - it runs in one
                self._driven[run.run_id] = driven = Carried(run, hearing, task)
            self._beginning, counted = self._beginning - 1, False
            self._attach(run.run_id)
            told.set_result(run.run_id)
            if begun.to_do:
                with self._pausing.holding(run):
                    await drive(run)
        except asyncio.CancelledError:
            if not told.done():
                told.set_exception(Refused("unavailable", "the server is stopping", "Try again in a moment.", 5))
            elif run is not None and run.driven.given_up and not self._stopping:
                words = "run %s was cancelled by something in it; it is left, and can be resumed"
                log.warning(words, run.run_id, extra=_about(run))
                self._stopped(run)
        except Exception as error:
            self._failed(error, told, run)
        finally:
            self._beginning -= counted
            if run is not None:
                run.let_go()
                run.release()
                if driven is not None:
                    self._driven.pop(run.run_id, None)
                    driven.over.set()

    def _failed(self, error: Exception, told: "asyncio.Future[str]", run: Run | None) -> None:
        if not told.done():
            told.set_exception(error)
        elif isinstance(error, JournalConflict):
            run_id = None if run is None else run.run_id
            log.warning("run %s is driven elsewhere now: %s", run_id, error, extra=_about(run))
        else:
            what, redact = f"run {None if run is None else run.run_id} stopped and can be resumed", self._redact
            if isinstance(error, _TOLD):
                # It says what is away, and where; no line of code has anything to add.
                log.error("%s: %s", what, redacted_text(str(error), redact), extra=_about(run))
            else:
                log_raised(what, error, redact, _about(run), level=logging.ERROR, log=log)
            if run is not None:
                self._stopped(run)

    def _stopped(self, run: Run) -> None:
        """Has whoever waits for the answer of a run that was stopped in the middle be told, now or later."""
        # What was on its way to the journal may be kept there, as far as it had come.
        on_its_way = len(run.events) - run.recorder.saved
        self._broken[run.run_id] = after = range(run.recorded, run.recorded + on_its_way + 1)
        while len(self._broken) > _MOST_BROKEN:
            del self._broken[next(iter(self._broken))]
        feed, _ = self._feeds.get(run.run_id, (None, None))
        if feed is not None:
            feed.stop(after, stopped_in_the_middle(run.run_id))

    def _attach(self, run_id: str) -> None:
        """Has the feed of a run show what it tells here."""
        driven = self._driven.get(run_id)
        feed, _ = self._feeds.get(run_id, (None, None))
        if driven is not None:
            self._broken.pop(run_id, None)
        if feed is not None:
            feed.stop(self._broken.get(run_id, range(0)), stopped_in_the_middle(run_id))
        if feed is not None and driven is not None and self._shows_pieces:
            feed.hearing, driven.hearing.feed = driven.hearing, feed

    async def follow(
        self, run_id: str, after: int = 0, *, pieces: bool = True, until_pause: bool = False
    ) -> AsyncIterator[Sequence[Numbered | Piece]]:
        """The events of a run from number `after` + 1 on, those stored and then each new one, whoever drives it.

        What is there at once comes together.

        Args:
            run_id: the run.
            after: the number of the last event that is known; 0 for none.
            pieces: whether what is shown live comes too, where the run is driven here and its journal redacts nothing.
            until_pause: whether it ends where the run waits, too; otherwise it goes on until the run has finished.

        Raises:
            JournalError: the run cannot be read; there is none, it was deleted, or the journal is gone.
        """
        feed = self._feed(run_id)
        feed.clients += 1
        try:
            async for batch in feed.read(after, pieces=pieces, until_pause=until_pause):
                yield batch
        finally:
            feed.clients -= 1
            self._drop(feed)

    def _feed(self, run_id: str) -> Feed:
        feed, _ = self._feeds.get(run_id, (None, None))
        if feed is None or feed.closed:
            if self._group is None or self._stopping:
                raise Refused("unavailable", "the server is stopping", "Try again in a moment.", 5)
            feed = Feed(self._journal, run_id)
            self._feeds[run_id] = feed, self._group.create_task(feed.watch())
            self._attach(run_id)
        return feed

    def _drop(self, feed: Feed) -> None:
        """Lets a feed go that nobody follows."""
        there, task = self._feeds.get(feed.run_id, (None, None))
        if feed.clients == 0 and there is feed:
            del self._feeds[feed.run_id]
            if task is not None:
                task.cancel()
            if feed.hearing is not None:
                feed.hearing.feed = None


def _about(run: Run | None) -> dict[str, object]:
    """The fields of a line about a run."""
    return {} if run is None else {"run_id": run.run_id, "agent": run.state.agent}
