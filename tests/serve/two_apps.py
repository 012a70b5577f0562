"""Two servers over one journal in one process, whose turns a test gives; and how they are asked without a socket."""

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import cycle

from treadle import MemoryJournal
from treadle.journal import JournalUnavailable

SHARED = ("_runs", "_leases", "_lines", "_titles", "_lock", "_bell")


class Paced(MemoryJournal):
    """What one process has of a journal that several share: before and after each call others have their turns.

    Args:
        of: the journal.
        pace: how many turns, call after call, again and again.
    """

    def __init__(self, of, pace=(0,), **more):
        super().__init__(**more)
        for name in SHARED:
            setattr(self, name, getattr(of, name))
        self._pace = cycle(pace)
        self.calls_left = None
        self.calls_until_away, self.calls_away = 0, 0
        self.was_away = False
        self.dead = False
        self.on_death = lambda: None

    def paced(self, pace):
        """Gives turns in another measure from here on."""
        self._pace = cycle(pace)

    def away(self, after, calls):
        """Has the journal be away for some calls, after some others: nothing is read or written by them."""
        self.calls_until_away, self.calls_away = after, calls

    def _reach(self):
        """Raises `JournalUnavailable` where the journal is away."""
        if self.calls_until_away:
            self.calls_until_away -= 1
        elif self.calls_away:
            self.calls_away -= 1
            self.was_away = True
            raise JournalUnavailable("the journal is away for a while", where="memory")

    async def _turns(self):
        for _ in range(next(self._pace)):
            await asyncio.sleep(0)
        self._reach()
        self._call()

    async def _written(self, write):
        """A write, which no cancellation cuts in half: one that comes meanwhile is raised when it is stored."""
        cancelled = None
        self._reach()
        for stage in (self._call, write, self._call):
            for _ in range(next(self._pace)):
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error
            done = stage()
            if done is not None:
                await done
        if cancelled is not None:
            raise cancelled

    def _call(self):
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left <= 0:
                self.die()
        if self.dead:
            raise JournalUnavailable("the process has died", where="memory")

    def die(self):
        """As when its process is killed: nothing more is written by it, and it has no run."""
        if not self.dead:
            self.dead = True
            mine = {run_id for run_id, holder in self._leases.items() if holder.name.endswith(f".{id(self):x}")}
            for run_id in mine:
                del self._leases[run_id]
            self.on_death()

    async def append(self, run_id, seq, events, held=None):
        await self._written(lambda: MemoryJournal.append(self, run_id, seq, events, held))

    async def fork(self, source, seq, run_id, events):
        await self._written(lambda: MemoryJournal.fork(self, source, seq, run_id, events))

    async def read(self, run_id, start=0):
        await self._turns()
        return await super().read(run_id, start)

    async def delete(self, run_id):
        await self._turns()
        return await super().delete(run_id)

    async def list(self, *given, **more):
        await self._turns()
        return await super().list(*given, **more)

    async def hold(self, run_id, holder, seconds, *, takeover=False):
        await self._turns()
        return await super().hold(run_id, holder, seconds, takeover=takeover)

    async def close(self):
        self.dead = True


class Client:
    """One request of an app, as a server hands it over.

    Attributes:
        status: of the answer; None until it has begun.
        body: what of it has come.
    """

    def __init__(self, app, method, path, given=None, headers=()):
        self.status, self.body = None, b""
        self.gone = asyncio.Event()
        self.headers = {}
        route, _, query = path.partition("?")
        data = b"" if given is None else json.dumps(given).encode()
        all_headers = [("host", "localhost"), ("content-type", "application/json"), *headers]
        scope = {
            "type": "http", "method": method, "path": route, "raw_path": route.encode(), "root_path": "",
            "query_string": query.encode(), "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in all_headers], "http_version": "1.1",
            "asgi": {"version": "3.0"},
        }  # fmt: skip
        self._sent, self._whole, self._data = False, False, data
        self._app, self._scope = app, scope

    async def run(self):
        """Waits for the answer: its status and JSON."""
        await self._app(self._scope, self._receive, self._send)
        try:
            return self.status, json.loads(self.body)
        except ValueError:
            return self.status, self.body

    async def _receive(self):
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._data, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif not self.gone.is_set():
            self.body += message.get("body", b"")


async def asked(app, method, path, given=None, headers=()):
    """The status and the JSON of an answer."""
    return await Client(app, method, path, given, headers).run()


@asynccontextmanager
async def lifespan(app):
    """The app at work."""
    async with app.lifespan(app):
        yield app
