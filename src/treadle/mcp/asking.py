"""Asking: what a server wants of the person in the middle of a call, such as a confirmation (an elicitation)."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from msgspec import Struct

from treadle.mcp.holding import Held
from treadle.mcp.secrets import Secrets
from treadle.mcp.waiting import with_defaults

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult


MOST_QUESTIONS: Final = 100
"""Questions that a server may ask from when a call of it begins until the next one does."""

_log = logging.getLogger("treadle")


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


class Person:
    """Whom a server asks: the application, in the event loop of a call that is under way, and in no other.

    Args:
        server: its name.
        secrets: what is not shown of what it asks.
    """

    def __init__(self, server: str, secrets: Secrets) -> None:
        self._server, self._secrets = server, secrets
        self._lock = threading.Lock()
        self._under_way: list[asyncio.AbstractEventLoop] = []
        self._open: list[tuple[asyncio.AbstractEventLoop, Future[Any]]] = []
        self._left = 0
        self._holding: list[Held] = []
        self._given_up = WeakSet[Any]()

    @contextmanager
    def during_call(self) -> Iterator[None]:
        """While a call of this event loop is under way the server may ask. What is open when its last ends is dropped:
        nobody needs the answer any more.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            self._under_way.append(loop)
            self._left = MOST_QUESTIONS
        try:
            yield
        finally:
            with self._lock:
                self._under_way.remove(loop)
                over = [] if loop in self._under_way else [one for one in self._open if one[0] is loop]
            for _, question in over:
                question.cancel()

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
        with self._lock:
            self._left -= 1
            if not self._under_way or self._left < 0:
                return ElicitResult(action="cancel")
            loop = self._under_way[-1]
            future = asyncio.run_coroutine_threadsafe(_asked(ask, question), loop)
            self._open.append((loop, future))
        try:
            found = await asyncio.wrap_future(future)
            if found is None:
                return ElicitResult(action="decline")
            return ElicitResult(
                action="accept", content=None if url is not None else with_defaults(found, schema or {})
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 0:
                raise
        except Exception:
            # What is wrong here is not for the server to read.
            _log.exception("ask= of the server %s failed; it is told that nobody answered", self._server)
        finally:
            with self._lock:
                self._open.remove((loop, future))
        return ElicitResult(action="cancel")


async def _asked(ask: Ask, question: Question) -> Mapping[str, Any] | None:
    found = ask(question)
    return await found if inspect.isawaitable(found) else found
