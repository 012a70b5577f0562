"""Client transport: requests sent through an official client, for what only it can sign and address.

`AsyncAnthropic` and `AsyncOpenAI`, and their kin for Bedrock, Vertex and Azure, know how to authenticate and where to
post; here they post the dialect's own body and give back the stream's own JSON, with their retries switched off. The
packages are imported by whoever made the client, never by treadle. Neighbour: `treadle.models.transport`, the port.
"""

import importlib
import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json
from treadle.models.errors import ConnectionFailed, ModelTimeout, ProtocolError
from treadle.models.transport import ErrorOf, Reply, Whole, translated


class ClientTransport:
    """Posts through an official client; see `treadle.models.transport.Transport`.

    Args:
        client: an asynchronous client of the `anthropic` or the `openai` package. It stays the caller's to close.

    Raises:
        Misuse: the client is of another kind, or not asynchronous.
    """

    def __init__(self, client: Any) -> None:
        packages = [kind.__module__.partition(".")[0] for kind in type(client).__mro__]
        package = next((name for name in packages if name in ("anthropic", "openai")), None)
        if package is None or not inspect.iscoroutinefunction(getattr(client, "post", None)):
            raise Misuse(
                f"client= takes an asynchronous official client, such as AsyncAnthropic, AsyncAnthropicBedrock, "
                f"AsyncOpenAI or AsyncAzureOpenAI; it was given a {type(client).__name__}"
            )
        self._client = client
        self._package = importlib.import_module(package)

    def __repr__(self) -> str:
        return f"ClientTransport({type(self._client).__name__})"

    async def post(self, path: str, body: bytes, stream: bool, error: ErrorOf) -> Reply:
        """The reply to the JSON `body`. Raises what `error` makes of an HTTP error, and `ModelError` for all else."""
        plain = msgspec.json.decode(body)
        options = {"max_retries": 0, "follow_redirects": False}
        with self._translated(error):
            if stream:
                chunks = self._package.AsyncStream[object]
                answer = await self._client.post(
                    path, cast_to=object, body=plain, options=options, stream=True, stream_cls=chunks
                )
                return _ClientStream(self, answer, error)
            return _ClientBody(await self._client.post(path, cast_to=object, body=plain, options=options))

    @contextmanager
    def _translated(self, error: ErrorOf) -> Iterator[None]:
        """Raises the client's errors as the `ModelError`s that they mean."""
        where = type(self._client).__name__
        try:
            with translated(where):
                yield
        except self._package.APIStatusError as problem:
            headers = {name.lower(): value for name, value in problem.response.headers.items()}
            raise error(problem.status_code, headers, _error_body(problem.body, problem.message)) from problem
        except self._package.APITimeoutError as problem:
            raise ModelTimeout(f"{where} gave up waiting: its own time limit passed") from problem
        except self._package.APIConnectionError as problem:
            raise ConnectionFailed(f"{where} cannot reach its server: {problem.__cause__ or problem}") from problem
        except ValueError as problem:
            raise ProtocolError(f"{where} could not read what its server sent: {problem}") from problem


class _ClientStream:
    """A stream that an official client reads."""

    def __init__(self, transport: ClientTransport, stream: Any, error: ErrorOf) -> None:
        self._transport = transport
        self._stream = stream
        self._events: AsyncIterator[Any] = aiter(stream)
        self._error = error

    @property
    def headers(self) -> Mapping[str, str]:
        """The response's headers, names in lower case."""
        headers: Mapping[str, str] = self._stream.response.headers
        return headers

    async def read(self) -> list[Json] | Whole | None:
        """The next stream event, or None at the end."""
        package = self._transport._package
        with self._transport._translated(self._error):
            try:
                event = await anext(self._events, None)
            except package.APIStatusError as problem:
                if problem.status_code >= 400:
                    raise
                return [_stream_error(problem.body)]
            except package.APIConnectionError:
                raise
            except package.APIError as problem:
                return [_stream_error(problem.body)]
        if event is None:
            return None
        if not isinstance(event, dict):
            raise ProtocolError(f"the server sent an event that is no JSON object: {str(event)[:200]}")
        return [event]

    async def aclose(self) -> None:
        """Lets go of the connection."""
        await self._stream.close()


class _ClientBody:
    """A whole body that an official client read."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self.headers: Mapping[str, str] = {}

    async def read(self) -> list[Json] | Whole | None:
        """The whole body once, then None."""
        body, self._body = self._body, None
        if body is not None and not isinstance(body, dict):
            raise ProtocolError(f"the server answered with what is no JSON object: {str(body)[:200]}")
        return None if body is None else Whole(body)

    async def aclose(self) -> None:
        """The client let go of the connection when it had read the body."""


def _error_body(body: Any, message: str) -> Json | str:
    """An error's body as the server sent it: the clients take the outer `error` off, or give text."""
    if isinstance(body, dict):
        return body if isinstance(body.get("error"), (dict, str)) else {"error": body}
    return str(body or message)


def _stream_error(body: Any) -> Json:
    """An error inside a stream, in the shape that every dialect's decoder raises its typed error for."""
    inner = body.get("error", body) if isinstance(body, dict) else {"message": str(body)}
    return {"type": "error", "error": inner}
