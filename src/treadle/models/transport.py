"""Transport: one POST of JSON to a server, and what comes back, in pieces or whole.

Knows HTTP and nothing of models' dialects; waits for the network. It never retries, follows no redirect and sets no
time limit of its own but for connecting: retries are the driver's, limits are `treadle.models.timeouts`. What the
network or the server does wrong is raised as a `ModelError`. Neighbours: `treadle.models.http_client`,
which has the connections; `treadle.models.sse` and `treadle.models.aws_stream`, which take streams apart;
`treadle.models.bodies`, which reads what they give; `treadle.models.client_transport`, the same over an official
client; `treadle.models.http_model`, which has both.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import urlsplit

from anyio.lowlevel import checkpoint
from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json
from treadle.models.aws_stream import AWS_STREAM, AwsEventParser
from treadle.models.bodies import event_json, json_or_text, no_object, no_text, plain_words, several, starts_event
from treadle.models.errors import BadRequest, ConnectionFailed, ModelError, ProtocolError, ReplyTooLong
from treadle.models.failures import error_for_redirect
from treadle.models.http_client import CONNECT_SECONDS, by_proxy, client_here
from treadle.models.sse import EventParser

if TYPE_CHECKING:
    import httpx2

ErrorOf = Callable[[int, Mapping[str, str], Json | str], ModelError]
Sign = Callable[[str, bytes], Awaitable[Mapping[str, str]]]
"""What makes the headers that authenticate one request, from its address and its body."""

NO_HEADERS: Final[Mapping[str, str]] = {}
FINALISING_TURNS: Final = 3
LARGEST_BODY: Final = 64_000_000
LARGEST_ERROR: Final = 1_000_000
LONGEST_WORDS: Final = 4_000
# What may stand before the first byte that tells a stream from a JSON body: blanks and a byte order mark.
LEADING: Final = b"\xef\xbb\xbf \t\r\n"


class Whole(Struct, frozen=True):
    """A reply that came as one JSON body."""

    body: Json


class Reply(Protocol):
    """The server's reply to one request, read until it ends and closed in any case."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response's headers, names in lower case."""

    @property
    def begun(self) -> str | None:
        """What has come of a body that is read as a whole, empty for a stream; None if it is no answer of a model."""

    @property
    def received(self) -> int:
        """Bytes of the body that have come so far."""

    async def read(self) -> "list[Json] | Whole | None":
        """The next stream events (none, if only a keep-alive came), the whole body, or None at the end."""

    def unclosed(self) -> list[Json]:
        """Where the connection broke or went silent: the event that had come but for its end, if one had."""

    async def aclose(self) -> None:
        """Lets go of the connection; cancels the request if the reply has not ended."""


class Transport(Protocol):
    """Something that posts JSON."""

    async def post(
        self, path: str, body: bytes, stream: bool, error: ErrorOf, headers: Mapping[str, str] = NO_HEADERS
    ) -> Reply:
        """The reply to the JSON `body`. Raises what `error` makes of an HTTP error, and `ModelError` for all else.

        What `headers` say comes beside what those of the same names say in each request.
        """


class HttpTransport:
    """Posts over HTTP, on one pool of connections for each event loop.

    Args:
        base_url: the server's address, to which paths are added.
        headers: sent with each request, the key among them.
        sign: what authenticates each request by itself, where no header does for all.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], sign: Sign | None = None) -> None:
        self.base_url = checked_url(base_url)
        self._sign = sign
        self._headers = {"accept": "text/event-stream, application/json", "content-type": "application/json"}
        self._headers |= {name.lower(): value for name, value in headers.items()}

    def __repr__(self) -> str:
        return f"HttpTransport({self.base_url!r})"

    async def post(
        self, path: str, body: bytes, stream: bool, error: ErrorOf, headers: Mapping[str, str] = NO_HEADERS
    ) -> Reply:
        """The reply to the JSON `body`. Raises what `error` makes of an HTTP error, and `ModelError` for all else."""
        base = self.base_url.removesuffix("/v1") if path.startswith("/v1/") else self.base_url
        client = await client_here()
        sent = {**self._headers, **beside(self._headers, headers)}
        if self._sign is not None:
            sent |= await self._sign(base + path, body)
        with translated(base):
            request = client.build_request("POST", base + path, content=body, headers=sent)
            response = await client.send(request, stream=True, follow_redirects=False)
        if 200 <= response.status_code < 300:
            return HttpReply(base, response, error)
        try:
            text = await _error_text(base, response)
        finally:
            await response.aclose()
        if response.status_code == 407:
            raise ConnectionFailed(f"cannot connect to {base}{by_proxy(base)}: 407 Proxy Authentication Required")
        if response.status_code < 400:
            raise error_for_redirect(base, response.status_code, response.headers)
        said = json_or_text(text)
        if isinstance(said, str):
            said = no_text(text, response.headers) or said
        raise error(response.status_code, response.headers, said)


class HttpReply:
    """A reply over HTTP; see `Reply`.

    A server that was asked for a stream may answer with one JSON body all the same, or a proxy with a page; the content
    type is not always right, so the first byte decides; what is said to come in frames of AWS is checked as such.
    """

    def __init__(self, base_url: str, response: "httpx2.Response", error: ErrorOf) -> None:
        self._base_url = base_url
        self._response = response
        self._error = error
        self._chunks: AsyncIterator[bytes] = response.aiter_bytes()
        self._framed = response.headers.get("content-type", "").startswith(AWS_STREAM)
        self._events: EventParser | AwsEventParser | None = None
        # Of what came at one time: what is not read yet, and what was found wrong after what was.
        self._came: Iterator[bytes] = iter(())
        self._fault: ProtocolError | None = None
        self._body: list[bytes] = []
        # What came of a stream before its first event: it may be no stream at all.
        self._before = b""
        self.received = 0
        self._heard = False
        self._ended = False

    @property
    def headers(self) -> Mapping[str, str]:
        """The response's headers, names in lower case."""
        return self._response.headers

    @property
    def begun(self) -> str | None:
        """What has come of a body that is read as a whole, empty for a stream; None if it is no answer of a model."""
        nothing = self._ended and not (self._heard or self._body)
        if nothing or (self._body and self._body[0].startswith(b"<")):
            return None
        return b"".join(self._body).decode("utf-8", "replace")

    async def read(self) -> list[Json] | Whole | None:
        """The next stream events (none, if only a keep-alive came), the whole body, or None at the end."""
        if found := self._found():
            return found
        if self._ended:
            return None
        with translated(self._base_url):
            chunk = await anext(self._chunks, None)
        if chunk is None:
            return self._end()
        self.received += len(chunk)
        if self._events is None and not self._body:
            chunk = chunk if self._framed else chunk.lstrip(LEADING)
            if chunk and chunk[0] not in b"{[<":
                # The length of a frame, which it begins with, begins with a zero.
                framed = self._framed or chunk[0] == 0
                self._events = AwsEventParser(LARGEST_BODY) if framed else EventParser(LARGEST_BODY)
        if self._events is not None:
            if not self._heard and len(self._before) < LONGEST_WORDS and isinstance(self._events, EventParser):
                self._before += chunk[:LONGEST_WORDS]
            return self._heard_in(self._events.feed(chunk))
        if chunk:
            self._body.append(chunk)
            if self.received > LARGEST_BODY:
                raise ReplyTooLong(f"{self._base_url} answered with more than {LARGEST_BODY:,} bytes; it was given up")
        return []

    def unclosed(self) -> list[Json]:
        """Where the connection broke or went silent: the event that had come but for its end, if one had.

        An object is whole with its last brace, so that none is taken for more than what came. A frame of AWS says how
        long it is, and is read as soon as it is there.
        """
        found: list[Json] = []
        for data in self._events.close() if isinstance(self._events, EventParser) else ():
            with suppress(ProtocolError):
                found.append(event_json(data))
        return found

    def _heard_in(self, events: Iterable[bytes]) -> list[Json]:
        self._came = iter(events)
        return self._found()

    def _found(self) -> list[Json]:
        """What came, up to what cannot be read; that is raised when all before it is read, and then the rest comes."""
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        found: list[Json] = []
        try:
            found.extend(event_json(data) for data in self._came if data)
        except ProtocolError as broken:
            self._came = chain(self._came, () if self._events is None else self._events.feed(b""))
            if not found:
                raise
            self._fault = broken
        self._heard = self._heard or bool(found)
        return found

    def _end(self) -> list[Json] | Whole | None:
        if self._events is not None:
            # A first event that the end cut off was begun: the stream has ended only once that is found to be none.
            last = self._heard_in(self._events.close())
            self._heard = self._heard or starts_event(self._before)
            if not self._heard and (fault := no_text(self._before, self.headers)):
                raise ProtocolError(f"{self._base_url} answered with {fault}")
            self._ended = True
            if not self._heard and (words := plain_words(self._before)):
                raise self._error(self._response.status_code, self.headers, words)
            return last
        self._ended = True
        text = b"".join(self._body)
        if not text:
            return None
        if text.startswith(b"<"):
            raise self._error(self._response.status_code, self.headers, text.decode("utf-8", "replace"))
        if events := several(text):
            return events
        body = json_or_text(text)
        if isinstance(body, str):
            raise ProtocolError(f"{self._base_url} answered with JSON that is {no_object(text)}")
        return Whole(body)

    async def aclose(self) -> None:
        """Lets go of the connection; cancels the request if the reply has not ended."""
        await cast("AsyncGenerator[bytes, None]", self._chunks).aclose()
        await self._response.aclose()
        if not self._ended:
            # httpx2 leaves one of its generators to the garbage collector, and asyncio finalises it in a task of its
            # own; it is given the turns that it takes, so that nothing is left when this returns.
            for _ in range(FINALISING_TURNS):
                await checkpoint()


def beside(present: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, str]:
    """`headers`, each with what `present` has under its name before it."""
    known = {name.lower(): value for name, value in present.items() if isinstance(value, str)} if headers else {}
    return {name: ",".join([*([known[name]] if name in known else ()), value]) for name, value in headers.items()}


def checked_url(url: str, source: str = "base_url") -> str:
    """`url` without a slash at its end. Raises `Misuse`, naming where it came from, if it is no http address."""
    url = url.strip()
    if not {"@", "?", "#"}.isdisjoint(url):
        raise Misuse(f"{source} takes no user, password, query or fragment; give api_key= or headers= instead")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not (is_address and url.isprintable()):
        raise Misuse(f"{source} is an address such as http://localhost:8000/v1; it was given {url!r}")
    return url.rstrip("/")


@contextmanager
def translated(base_url: str) -> Iterator[None]:
    """Raises what goes wrong on the network as the `ModelError` that it means."""
    import httpx2

    try:
        yield
    except httpx2.DecodingError as problem:
        raise ProtocolError(f"{base_url} sent a body that does not decompress: {problem}") from problem
    except httpx2.LocalProtocolError:
        # Its message may hold the header that was wrong, and so the key.
        raise BadRequest(f"the request to {base_url} cannot be sent over HTTP; are its headers right?") from None
    except httpx2.RemoteProtocolError as problem:
        # The same class says that the connection closed too early and that what came is no HTTP.
        if "peer closed" in str(problem) or "disconnected" in str(problem):
            raise ConnectionFailed(f"{base_url} closed the connection before its reply was whole") from problem
        raise ProtocolError(f"{base_url} does not answer in HTTP: {problem}") from problem
    except httpx2.ConnectTimeout as problem:
        how = f"did not accept a connection within {CONNECT_SECONDS:g} s"
        raise ConnectionFailed(f"{base_url} {how}{by_proxy(base_url)}") from problem
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol) as problem:
        told = f"cannot connect to {base_url}{by_proxy(base_url)}: {problem or _cause(problem)}"
        raise ConnectionFailed(told) from problem
    except (httpx2.TransportError, OSError) as problem:
        raise ConnectionFailed(
            f"the connection to {base_url} broke: {str(problem) or _cause(problem) or type(problem).__name__}"
        ) from problem


async def _error_text(base_url: str, response: "httpx2.Response") -> bytes:
    """The body of an error response, as much as comes of it."""
    text = b""
    try:
        with translated(base_url):
            async for chunk in response.aiter_bytes():
                text += chunk
                if len(text) > LARGEST_ERROR:
                    break
    except ModelError:
        # The status tells more than that its explanation was cut off.
        pass
    return text


def _cause(problem: BaseException) -> str:
    cause = problem.__cause__ or problem.__context__
    return str(cause or "")
