"""Access: who may talk to the server at all, from where, and how much. Closed unless something opens it.

Whoever calls is held against, in this order: the `Host` (so that no name of a stranger's can point here), the `Origin`
(so that no page of a stranger's can use a browser that is let in), the token or the application's own `auth`, and the
rate. Only then is any route asked.
"""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from ipaddress import ip_address
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection, Request

from treadle.kernel.errors import Misuse
from treadle.serve.queries import digits
from treadle.serve.refused import Refused
from treadle.serve.user import User, operator

COOKIE: Final = "treadle_session"
"""What a browser keeps in place of the token; no script can read it, and no other site can send it."""

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""Names under which a server is reached from its own machine only."""

PATIENCE: Final = 30.0
"""Seconds in which a body must have come."""

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

FEWEST_TOKEN: Final = 16
"""Characters of a token that is taken."""

_TRIES: Final = 20
"""Tokens that may be tried from one address in a minute."""

_USERS: Final = 10_000
"""Users whose rate is remembered."""

Auth = Callable[[Request], User | None | Awaitable[User | None]]
"""The application's own word on who calls: a `User`, or None for nobody."""


class Bounds(NamedTuple):
    """How much the server takes on.

    Attributes:
        body: bytes of the body of a request.
        runs: runs under way in this process at once.
        streams: streams open at once; `streams_per_user`, of one user.
        requests_per_minute: of one user.
        starts_per_minute: runs begun, forked and gone on with, by a decision too, of one user.
    """

    body: int = 4_000_000
    runs: int = 200
    streams: int = 2_000
    streams_per_user: int = 1_000
    requests_per_minute: int = 1_200
    starts_per_minute: int = 120


class Access:
    """Who may talk to the server, from where, and how much.

    Args:
        token: what a caller has to know; None for no token.
        auth: the application's own word on who calls; None for none. Not both.
        hosts: names, without ports, under which the server is reached; by default those of its own machine. "*" for
            any, where something before it looks.
        origins: origins of other sites whose pages may use it, such as "https://front.example".
        bounds: how much it takes on.
        user: who calls where there is neither token nor auth, or who has the token.

    Raises:
        Misuse: there are both token and auth, the token is short, or a name is none.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        auth: Auth | None = None,
        hosts: Iterable[str] = LOOPBACK,
        origins: Iterable[str] = (),
        bounds: Bounds | None = None,
        user: str = "local",
    ) -> None:
        if token is not None and auth is not None:
            raise Misuse("give a token or auth, not both: auth says who calls, and looks at what it likes")
        if token is not None and (not isinstance(token, str) or len(token) < FEWEST_TOKEN or not token.isascii()):
            raise Misuse(
                f"a token is an ASCII text of {FEWEST_TOKEN} characters or more; make one with "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if isinstance(hosts, str) or isinstance(origins, str):
            raise Misuse("hosts and origins take lists of texts")
        self.hosts, self.origins = _hosts(hosts), _origins(origins)
        self.bounds = bounds or Bounds()
        self._token, self._auth = token, auth
        self._operator = operator(user)
        self._streams: dict[str, int] = {}
        self._requests = Rate(self.bounds.requests_per_minute)
        self._starts = Rate(self.bounds.starts_per_minute)
        self._tries = Rate(_TRIES)

    @property
    def is_open(self) -> bool:
        """Whether anybody who reaches it may do everything: only fit for one's own machine."""
        return self._token is None and self._auth is None

    @property
    def has_token(self) -> bool:
        """Whether a caller can log in with a token."""
        return self._token is not None

    def check_place(self, connection: HTTPConnection, *, page: bool = False) -> None:
        """Holds a request against where it comes from.

        Args:
            connection: the request.
            page: whether it is for the page itself, to which others may have links.

        Raises:
            Refused: its host is none of ours ("misdirected"), or it comes from another site ("forbidden").
        """
        headers = connection.headers
        host = headers.get("host", "")
        if not self._is_called(connection, _name_of(host)):
            raise Refused(
                "misdirected",
                f"this server is not called {host!r:.100}",
                "Say under which names it is reached: --allow-host NAME, or app(…, hosts=[…]).",
            )
        server = connection.scope.get("server")
        if self.is_open and server is not None and server[1] is not None and not is_loopback(server[0]):
            raise Refused("forbidden", "without a token or auth this server answers its own machine only")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and not _is_same(origin, host):
            raise Refused("forbidden", f"pages of {origin!r:.100} may not use this server")
        follows_a_link = page and connection.scope.get("method") in SAFE and headers.get("sec-fetch-mode") == "navigate"
        if origin not in self.origins and _is_cross_site(headers) and not follows_a_link:
            raise Refused("forbidden", "pages of other sites may not use this server")

    def _is_called(self, connection: HTTPConnection, name: str) -> bool:
        """Whether it goes by that name: one that it was given, or the very address that was reached. No name of a
        stranger's is an address.
        """
        server = connection.scope.get("server")
        own = server is not None and name.strip("[]") == server[0] and _is_address(server[0])
        return own or "*" in self.hosts or name in self.hosts

    async def user(self, request: Request) -> User:
        """Who calls.

        Raises:
            Refused: nobody that is known ("unauthorised"), or too often ("too_many").
        """
        user = await self._found(request)
        if user is None:
            raise Refused(
                "unauthorised",
                "who calls is not known" if self._auth is not None else "the token is missing or wrong",
                "" if self._auth is not None else "Send it as Authorization: Bearer TOKEN.",
            )
        self._requests.take(user.name, "requests")
        return user

    async def _found(self, request: Request) -> User | None:
        if self._auth is not None:
            found = self._auth(request)
            user = await found if isinstance(found, Awaitable) else found
            if user is not None and not isinstance(user, User):
                raise Misuse(f"auth returns a treadle.serve.User or None; it returned {type(user).__name__}")
            return user
        if self._token is None or self._has_token(request.headers) or self._has_cookie(request):
            return self._operator
        return None

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def is_token(self, given: str) -> bool:
        """Whether it is the token."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _has_cookie(self, request: Request) -> bool:
        return hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self.session().encode())

    def session(self) -> str:
        """What a browser is given to keep: it follows from the token, which does not follow from it."""
        return hmac.new((self._token or "").encode(), b"treadle session", hashlib.sha256).hexdigest()

    def tries(self, request: Request) -> None:
        """Somebody tries a token. Raises `Refused` if that is tried too often, from wherever."""
        self._tries.take(request.client.host if request.client is not None else "", "tokens tried")

    def starts(self, user: User) -> None:
        """The user begins a run, or has one go on. Raises `Refused` if that is too often."""
        self._starts.take(user.name, "runs begun")

    async def body(self, request: Request) -> bytes:
        """The body of a request. Raises `Refused` if it is too large; no more of it is read then."""
        most, parts, size = self.bounds.body, [], 0
        if (digits(request.headers.get("content-length", "")) or 0) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(PATIENCE):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise _too_large(most)
                    parts.append(part)
        except TimeoutError:
            raise Refused("bad_request", f"the body did not come within {PATIENCE:g} seconds") from None
        except ClientDisconnect:
            # Nobody reads this; it is no error of ours, and the log is not for whoever hangs up to fill.
            raise Refused("bad_request", "the client went away before its body had come") from None
        return b"".join(parts)

    def stream(self, user: User) -> Callable[[], None]:
        """The user opens a stream: what to call when it is closed. Raises `Refused` if too many are open."""
        streams, name = self._streams, user.name
        mine = streams.get(name, 0)
        if mine >= self.bounds.streams_per_user or sum(streams.values()) >= self.bounds.streams:
            raise Refused("too_many", "too many streams are open", "Close one, or try again later.", 10)
        streams[name] = mine + 1

        def close() -> None:
            streams[name] -= 1
            if not streams[name]:
                del streams[name]

        return close


class Rate:
    """How often each user may do something: so often a minute, and as often at once after a quiet minute."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, what: str) -> None:
        """Once more. Raises `Refused` if that is too often."""
        now = time.monotonic()
        left, at = self._left.pop(name, (float(self._most), now))
        left = min(float(self._most), left + (now - at) * self._most / 60)
        self._left[name] = max(0.0, left - 1), now
        while len(self._left) > _USERS:
            self._left.popitem(last=False)
        if left < 1:
            wait = (1 - left) * 60 / self._most if self._most else 60.0
            raise Refused("too_many", f"more than {self._most} {what} in a minute", "Try again later.", wait)


def is_loopback(host: str) -> bool:
    """Whether an address, or the name "localhost", is the machine's own."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _hosts(given: Iterable[str]) -> Collection[str]:
    found = [one.lower() for one in given if isinstance(one, str)]
    for one in found:
        if "/" in one or not one or _name_of(one) != one:
            raise Misuse(f"hosts takes names without scheme and port, such as 'agents.example'; it was given {one!r}")
    return frozenset(found)


def _origins(given: Iterable[str]) -> Collection[str]:
    found = list(given)
    for one in found:
        scheme, mark, rest = one.partition("://")
        if scheme not in ("http", "https") or not mark or not rest or "/" in rest or "*" in rest:
            raise Misuse(f"origins takes scheme and host, such as 'https://front.example'; it was given {one!r}")
    return frozenset(found)


def _name_of(host: str) -> str:
    """The name of a host, without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _is_same(origin: str, host: str) -> bool:
    scheme, mark, rest = origin.partition("://")
    return bool(mark) and scheme in ("http", "https") and rest.lower() == host.lower()


def _is_cross_site(headers: Headers) -> bool:
    return headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")


def _too_large(most: int) -> Refused:
    return Refused("too_large", f"the body has more than {most:,} bytes, which is the most")
