"""Asking: what a server wants of the person in the middle of a call, such as a confirmation (an elicitation), or of a
model (sampling).
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from msgspec import Struct

from treadle.mcp.holding import Held
from treadle.mcp.secrets import Secrets
from treadle.mcp.waiting import with_defaults
from treadle.tools.raised import Redact, log_raised

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

T = TypeVar("T")

MOST_QUESTIONS: Final = 100
"""Questions that a server may ask from when a call of it begins until the next one does."""


class Question(Struct, frozen=True):
    """What a server asks the person. It is the server's word: whoever shows it says whose it is.

    Attributes:
        server: the name of the server.
        message: what it wants to know.
        schema: the JSON Schema of the answer: an object of texts, numbers, booleans and choices; None with a `url`.
        url: the page on which the person is to answer, instead of here; None for an answer here.
    """

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


Ask = Callable[[Question], Mapping[str, Any] | None | Awaitable[Mapping[str, Any] | None]]
"""Asks the person: returns the answer, an empty one for a `url` that was opened, or None if the person declines."""


class _Call(Struct, frozen=True, eq=False):
    """A call that is under way: in which event loop, and what its run's journal redacts."""

    loop: asyncio.AbstractEventLoop
    redact: Redact | None


class _Open(Struct, eq=False):
    """What the application is asked: for which call, if that is known, in which loop, and whether it is asked `again`
    in another where that call's loop has no more to do with it.
    """

    call: _Call | None
    loop: asyncio.AbstractEventLoop
    answer: Future[Any]
    again: bool = False


_OURS: ContextVar[_Call | None] = ContextVar("ours", default=None)
"""The call that something is done for. The official package carries it to what a server says with the answer to it."""


class Person:
    """Whom a server asks: the application, in the event loop of a call that is under way, and in no other: that of the
    call that it asks about, where it says so, as each does in the newest version of the protocol, and over HTTP.

    Args:
        server: its name.
        secrets: what is not shown of what it asks.
    """

    def __init__(self, server: str, secrets: Secrets) -> None:
        self._server, self._secrets = server, secrets
        self._lock = threading.Lock()
        self._under_way: list[_Call] = []
        self._open: list[_Open] = []
        self._left = 0
        self._holding: list[Held] = []
        self._given_up = WeakSet[Any]()

    @contextmanager
    def during_call(self, redact: Redact | None = None) -> Iterator[None]:
        """While a call of this event loop is under way the server may ask. What it asks about it is dropped as it ends:
        nobody needs the answer any more. What may be about another call is asked on in this loop while that has one,
        and then in another, unless the last here was given up: it may have been about that. `redact` is that of the
        run's journal.
        """
        call, given_up = _Call(asyncio.get_running_loop(), redact), False
        with self._lock:
            self._under_way.append(call)
            self._left = MOST_QUESTIONS
        before = _OURS.set(call)
        try:
            yield
        except asyncio.CancelledError:
            given_up = True
            raise
        finally:
            _OURS.reset(before)
            with self._lock:
                self._under_way.remove(call)
                over = [one for one in self._open if self._is_over(one, call)]
                for one in over:
                    one.again = one.call is None and not given_up
            for one in over:
                one.answer.cancel()

    def _is_over(self, asked: _Open, call: _Call) -> bool:
        """Whether nobody waits for an answer in a loop any more, now that `call` has ended."""
        if asked.call is not None:
            return asked.call is call
        return asked.loop is call.loop and not any(one.loop is call.loop for one in self._under_way)

    @contextmanager
    def holding(self, held: Held, session: Any) -> Iterator[None]:
        """While a call is under way that the server holds open for answers, of which `held` has what there are.

        One that is given up before the server has answered it may still ask, as long as its `session` lasts.
        """
        with self._lock:
            self._holding.append(held)
        try:
            yield
        except asyncio.CancelledError:
            with self._lock:
                self._given_up.add(session)
            raise
        finally:
            with self._lock:
                self._holding.remove(held)

    def held(self, params: "ElicitRequestParams", session: Any) -> "ElicitResult":
        """What `holding` has for an answer; "cancel" where there is not exactly one call that may have asked."""
        from mcp_types import ElicitResult

        with self._lock:
            self._left -= 1
            if session in self._given_up:
                for one in self._holding:
                    one.refused = True
            elif len(self._holding) == 1 and self._left >= 0:
                return self._holding[0].answered(params)
        return ElicitResult(action="cancel")

    async def answered(self, ask: Ask, params: "ElicitRequestParams") -> "ElicitResult":
        """What the person answers; "cancel" where no call is under way, or too much was asked."""
        from mcp_types import ElicitResult

        schema, url = getattr(params, "requested_schema", None), getattr(params, "url", None)
        told = self._secrets.hidden(params.message), self._secrets.without(schema)
        question = Question(self._server, *told, url)

        async def answer() -> ElicitResult:
            found = await _awaited(ask(question))
            if found is None:
                return ElicitResult(action="decline")
            return ElicitResult(
                action="accept", content=None if url is not None else with_defaults(found, schema or {})
            )

        return await self._from_loop(answer, "ask=") or ElicitResult(action="cancel")

    async def sampled(self, sampling: Callable[..., Awaitable[Any]], context: Any, params: Any) -> Any:
        """What a model answers, as the application has it asked; an error where no call is under way, or too much was
        asked.
        """
        from mcp_types import INVALID_REQUEST, ErrorData

        async def answer() -> Any:
            return await _awaited(sampling(context, params))

        nobody = ErrorData(code=INVALID_REQUEST, message="no model answers")
        return await self._from_loop(answer, "sampling=") or nobody

    async def _from_loop(self, answer: Callable[[], Coroutine[Any, Any, T]], option: str) -> T | None:
        """What `answer` gives, in the event loop of the call that it is about, or of one that is under way; None where
        there is none, where too much was asked, and where what was given as `option` fails, which is logged.
        """
        with self._lock:
            self._left -= 1
            if self._left < 0:
                return None
        task, ours = asyncio.current_task(), _OURS.get()
        while True:
            with self._lock:
                calls = [one for one in self._under_way if ours in (None, one)]
                if not calls:
                    return None
                loop = calls[-1].loop
                asked = _Open(ours, loop, asyncio.run_coroutine_threadsafe(answer(), loop))
                self._open.append(asked)
            try:
                return await asyncio.wrap_future(asked.answer)
            except asyncio.CancelledError:
                if task is not None and task.cancelling() > 0:
                    raise
                if not asked.again:
                    return None
            except Exception as error:
                # What is wrong here is not for the server to read.
                what = f"{option} of the server {self._server} failed; it is told that nobody answered"
                log_raised(what, error, _all_of(calls), level=logging.ERROR)
                return None
            finally:
                with self._lock:
                    self._open.remove(asked)


def _all_of(calls: Sequence[_Call]) -> Redact | None:
    """What all of their runs redact: which of them the server asked about nobody can tell."""
    redacts = [one.redact for one in calls if one.redact is not None]

    def redact(text: str) -> str:
        for one in redacts:
            text = one(text)
        return text

    return redact if redacts else None


async def _awaited(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found
