"""Turns: one at a time, first come first served, from whatever event loops."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager


class Turns:
    """Whose turn it is; those who come meanwhile wait, each in its own event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """While it is our turn."""
        await self._ours()
        try:
            yield
        finally:
            self._pass_on()

    async def _ours(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn: Future[None] = Future()
            self._waiting.append(turn)
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            with self._lock:
                given = not turn.cancel() and not turn.cancelled()
            if given:
                # It came at the moment at which we were cancelled.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._taken = False
