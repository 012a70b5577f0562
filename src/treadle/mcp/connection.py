"""Connection: the link to a server as all that use it share it: made when it is first needed, made anew if it ends, and
closed when nobody holds it any more.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from treadle.event_loop import running_loop
from treadle.mcp.failing import in_words
from treadle.mcp.link import Link
from treadle.mcp.program import Said
from treadle.mcp.secrets import Secrets
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    from mcp import Client

Connect = Callable[[Said, Callable[[], None]], AbstractAsyncContextManager["Client"]]

MOST_STARTS: Final = 4
"""Times that a server is started within a minute if it dies each time; then it is left alone until that is over."""


class Connection:
    """The link to one server.

    Args:
        name: the server's.
        told: its program or address, for errors.
        secrets: what is in no error.
        connect: makes a client, given where a program's errors are said to, and what is called when the server says
            that it has other tools.

    Attributes:
        changes: how often the server has said that it has other tools.
    """

    def __init__(self, name: str, told: str, secrets: Secrets, connect: Connect) -> None:
        self._name, self._told, self._secrets, self._connect = name, told, secrets, connect
        self._lock, self._process = threading.Lock(), os.getpid()
        self._link: Link | None = None
        self._ended: list[Link] = []
        self._said = Said(secrets)
        self._holders = 0
        self._deaths: deque[float] = deque(maxlen=MOST_STARTS)
        self.changes = 0

    def changed(self) -> None:
        """The server has said so. Called from any thread."""
        self.changes += 1

    async def __aenter__(self) -> "Connection":
        running_loop()
        self._leave_to_parent()
        with self._lock:
            self._holders += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        with self._lock:
            self._holders = max(0, self._holders - 1)
            ended, self._ended = self._ended, []
            if not self._holders and self._link is not None:
                ended.append(self._link)
                self._link = None
        async with AsyncExitStack() as closing:
            # Each, also where this task is cancelled as one of them is closed.
            for link in ended:
                closing.push_async_callback(link.close)

    def _leave_to_parent(self) -> None:
        """In a process that was forked: the link's thread is not here, nor is the server this one's to end."""
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
            self._link, self._ended, self._holders = None, [], 0

    async def up(self) -> Link:
        """A link that is connected.

        Raises:
            ServerFailed: there is none to be had.
        """
        link = self._live()
        try:
            await link.client()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            said = f" (it said: {self._said.end})" if self._said.end else ""
            told = f"the server {self._name} cannot be used: {in_words(error, self._told)}{said}"
            raise ServerFailed(self._secrets.hidden(told)) from None
        return link

    def _live(self) -> Link:
        with self._lock:
            if self._link is not None and not self._link.gone:
                return self._link
            now = time.monotonic()
            if self._link is not None:
                self._ended.append(self._link)
                if not self._link.forgotten:
                    self._deaths.append(now)
                self._link = None
            if len(self._deaths) == MOST_STARTS and now - self._deaths[0] < 60:
                raise ServerFailed(
                    f"the server {self._name} ended, or could not be reached, {MOST_STARTS} times within a minute; it "
                    "is left alone until that is over"
                )
            self._said = said = Said(self._secrets)
            self._link = Link(self._name, partial(self._connect, said, self.changed), self.changed)
            return self._link
