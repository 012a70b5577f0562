"""Client transport: requests sent through an official client, for what only it can sign and address.

`AsyncAnthropic` and `AsyncOpenAI`, and their kin for Bedrock, Vertex and Azure, know how to authenticate and where to
post; here they post the dialect's own body, with their retries switched off, and the response is read as any other is.
The packages are imported by whoever made the client, never by treadle. Neighbour: `treadle.models.transport`, the port.
"""

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
)
from treadle.models.failures import error_for_redirect
from treadle.models.transport import NO_HEADERS, ErrorOf, HttpReply, Reply, beside, translated

# How botocore, google-auth, azure-identity and the clients themselves say what kept them from signing a request.
CREDENTIALS: Final = re.compile(r"credential|auth|token|api[_ ]key", re.IGNORECASE)
NETWORK: Final = re.compile(r"transport|connect|timeout", re.IGNORECASE)


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
        self._stream = self._package.AsyncStream[object]

    def __repr__(self) -> str:
        return f"ClientTransport({type(self._client).__name__})"

    async def post(
        self, path: str, body: bytes, stream: bool, error: ErrorOf, headers: Mapping[str, str] = NO_HEADERS
    ) -> Reply:
        """The reply to the JSON `body`. Raises what `error` makes of an HTTP error, else a `ModelError`."""
        import httpx2

        plain = msgspec.json.decode(body)
        options: Json = {"max_retries": 0, "follow_redirects": False}
        if headers:
            # A client puts these in the place of its own.
            options["headers"] = beside(getattr(self._client, "default_headers", {}), headers)
        with self._translated(error):
            try:
                response = await self._client.post(
                    path, cast_to=httpx2.Response, body=plain, options=options, stream=stream, stream_cls=self._stream
                )
            except (self._package.APIError, httpx2.HTTPError, OSError):
                raise
            except ImportError as problem:
                raise Misuse(f"{type(self._client).__name__} lacks a package of its extra: {problem}") from problem
            except Exception as problem:
                raise self._unsent(problem) from problem
        return HttpReply(type(self._client).__name__, response, error)

    @contextmanager
    def _translated(self, error: ErrorOf) -> Iterator[None]:
        """Raises the client's errors as the `ModelError`s that they mean."""
        where = type(self._client).__name__
        try:
            with translated(where):
                yield
        except self._package.APIStatusError as problem:
            headers = {name.lower(): value for name, value in problem.response.headers.items()}
            if problem.status_code < 400:
                raise error_for_redirect(where, problem.status_code, headers) from problem
            raise error(problem.status_code, headers, _error_body(problem.body, problem.message)) from problem
        except self._package.APITimeoutError as problem:
            raise ModelTimeout(f"{where} gave up waiting: its own time limit passed") from problem
        except self._package.APIConnectionError as problem:
            raise ConnectionFailed(f"{where} cannot reach its server: {problem.__cause__ or problem}") from problem
        except self._package.APIError as problem:
            raise ProtocolError(f"{where} cannot use what came: {problem} ({type(problem).__name__})") from problem

    def _unsent(self, problem: Exception) -> ModelError:
        """What it means that the client failed before it sent anything: then it looks for credentials, and signs."""
        kind = type(problem)
        if any(one.__name__ == "RetryableError" for one in kind.__mro__):
            return Overloaded(f"{type(self._client).__name__} asks for another attempt: {problem}")
        told = f"{type(self._client).__name__} could not send the request: {problem} ({kind.__name__})"
        if NETWORK.search(kind.__name__):
            return ConnectionFailed(told)
        if CREDENTIALS.search(f"{kind.__module__}.{kind.__name__} {problem}"):
            return AuthenticationFailed(told)
        return BadRequest(told)


def _error_body(body: Any, message: str) -> Json | str:
    """An error's body as the server sent it: the clients take the outer `error` off, or give text."""
    if isinstance(body, dict):
        return body if isinstance(body.get("error"), (dict, str)) else {"error": body}
    return str(body or message)
