"""Every error that an official client has a class for is typed here, and tried again where its own client would.

The clients are the real ones, and so are the responses, over a socket: what a response means is told by the class that
the client raises for it. What a client raises without a response is raised by it as it is.
"""

import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from treadle import Agent
from treadle.models import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    RateLimited,
)
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel

pytestmark = pytest.mark.anyio

KEY = "sk-made-up-and-long-enough"
CODES: list[tuple[int, str | None]] = sorted(
    __import__("anthropic._error_classes", fromlist=["x"]).ERROR_CLASSES,
    key=lambda one: (one[0], one[1] or ""),
)
"""The statuses and codes that Anthropic's client has a class for."""
STATUSES = [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 451, 500, 501, 502, 503, 504, 529, 599]
USED_UP = ("spend_limit_reached", "billing")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Answers each request with the status and the code that its model's name asks for."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
            status, code, again = asked.split("/")
            error: dict[str, Any] = {"type": "some_error", "message": "told so"}
            if code:
                error |= {"details": {"error_code": code}}
            body = json.dumps({"type": "error", "error": error}).encode()
            self.send_response(int(status))
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("request-id", "req_1")
            self.send_header("x-request-id", "req_1")
            if again:
                self.send_header("x-should-retry", again)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    thread.join()
    listening.server_close()


def meant(theirs: Exception, status: int, code: str | None) -> type[ModelError]:
    """What a class of an official client means here."""
    if status == 402 or any(word in (code or "") for word in USED_UP):
        return QuotaExceeded if status in (402, 429) else AuthenticationFailed if status == 403 else BadRequest
    names = {kind.__name__ for kind in type(theirs).__mro__}
    if names & {"AuthenticationError", "PermissionDeniedError"}:
        return AuthenticationFailed
    if "RateLimitError" in names:
        return RateLimited
    if status == 408:
        return ModelTimeout
    if status == 413:
        return ContextOverflow
    # 499 is what Google cancelled of its own accord; elsewhere it says that we were gone, and nobody hears it.
    if (names & {"ConflictError", "InternalServerError"} and status != 501) or status in (409, 499):
        return Overloaded
    return BadRequest


async def ours(model: HttpModel) -> ModelError:
    """What the run of a model says went wrong."""
    result = await Agent(model, retries=0).run("hi")
    assert result.stop.reason == "model_error"
    assert result.error is not None
    return result.error


@asynccontextmanager
async def clients(package: Any, url: str) -> AsyncIterator[tuple[Any, Callable[[str], list[HttpModel]]]]:
    """An official client, and the models of a name in the dialects that it speaks, which post through it."""
    kind = anthropic.AsyncAnthropic if package is anthropic else openai.AsyncOpenAI
    async with kind(base_url=url, api_key=KEY, max_retries=0) as client:

        def models(name: str) -> list[HttpModel]:
            if package is anthropic:
                return [AnthropicModel(name, client=client)]
            return [OpenAIChatModel(name, client=client), OpenAIResponsesModel(name, client=client)]

        yield client, models


async def raised(client: Any, name: str) -> Exception:
    """What the official client itself raises."""
    said: list[Any] = [{"role": "user", "content": "hi"}]
    try:
        if isinstance(client, anthropic.AsyncAnthropic):
            await client.messages.create(model=name, max_tokens=5, messages=said)
        else:
            await client.chat.completions.create(model=name, messages=said)
    except (anthropic.AnthropicError, openai.OpenAIError) as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("status", sorted({status for status, _ in CODES}))
async def test_what_anthropics_client_has_a_class_for_is_typed(server: str, status: int) -> None:
    async with clients(anthropic, server) as (client, models):
        for code in [code for one, code in CODES if one == status]:
            name = f"{status}/{code or ''}/"
            theirs = await raised(client, name)
            [model] = models(name)
            error = await ours(model)
            assert type(error) is meant(theirs, status, code), (type(theirs).__name__, type(error).__name__)
            assert (error.status, error.request_id) == (status, "req_1")
            assert "told so" in str(error)


@pytest.mark.parametrize("package", [anthropic, openai])
async def test_every_status_means_what_the_official_client_says(server: str, package: Any) -> None:
    async with clients(package, server) as (client, models):
        for status in STATUSES:
            theirs = await raised(client, f"{status}//")
            for model in models(f"{status}//"):
                error = await ours(model)
                assert type(error) is meant(theirs, status, None), type(theirs).__name__
                assert error.status == status


@pytest.mark.parametrize("package", [anthropic, openai])
async def test_a_server_that_says_whether_to_try_again_is_obeyed(server: str, package: Any) -> None:
    """As the official clients do."""
    async with clients(package, server) as (_, models):
        for status, again in [(429, "false"), (529, "false"), (400, "true"), (500, "true")]:
            for model in models(f"{status}//{again}"):
                error = await ours(model)
                assert error.retryable is (again == "true")


def classes(package: Any, base: type[Exception]) -> list[type[Exception]]:
    """Every class of error of a package, once its modules are loaded."""
    found, seen = [base], {base}
    for kind in found:
        fresh = [
            one for one in kind.__subclasses__() if one not in seen and one.__module__.startswith(package.__name__)
        ]
        found += fresh
        seen |= set(fresh)
    return found


def instance(kind: type[Exception]) -> Exception:
    """An error of that class, made of what its parameters are called."""
    request = httpx2.Request("POST", "http://127.0.0.1/v1")
    status = getattr(kind, "status_code", None)
    response = httpx2.Response(
        status if isinstance(status, int) else 400, request=request, json={"error": {"message": "x"}}
    )
    values: dict[str, Any] = {
        "message": "told so", "request": request, "response": response, "body": None, "symbol": "x", "library": "x",
        "extra": "x", "completion": None, "unsent_messages": [],
    }  # fmt: skip
    wanted = [
        one for one in inspect.signature(kind.__init__).parameters.values() if one.default is inspect.Parameter.empty
    ]
    given = {
        one.name: values.get(one.name) for one in wanted if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    given.pop("self", None)
    try:
        return kind(**given)
    except Exception:
        made = kind.__new__(kind)
        made.args = ("told so",)
        return made


async def of_failing(package: Any, error: Exception) -> ModelError:
    """What a model says whose official client raises `error` wherever it posts."""
    base: Any = anthropic.AsyncAnthropic if package is anthropic else openai.AsyncOpenAI

    class Failing(base):  # type: ignore[misc]
        async def post(self, *_: Any, **__: Any) -> Any:
            raise error

    async with httpx2.AsyncClient(verify=False) as http:
        client = Failing(base_url="http://127.0.0.1:9", api_key=KEY, http_client=http)
        model = AnthropicModel("m", client=client) if package is anthropic else OpenAIChatModel("m", client=client)
        return await ours(model)


@pytest.mark.parametrize("package", [anthropic, openai])
async def test_whatever_class_a_client_raises_it_is_typed(package: Any) -> None:
    base = anthropic.AnthropicError if package is anthropic else openai.OpenAIError
    kinds = classes(package, base)
    assert len(kinds) > 15
    for kind in kinds:
        error = await of_failing(package, instance(kind))
        # The general class is what stands for an exception that nobody expected.
        assert type(error) is not ModelError, (kind, error)
        assert KEY not in str(error)


EXPECTED: list[tuple[Any, Callable[[], Exception], type[ModelError]]] = [
    (package, make, wanted)
    for package in (anthropic, openai)
    for make, wanted in (
        (lambda p=package: instance(p.APIConnectionError), ConnectionFailed),
        (lambda p=package: instance(p.APITimeoutError), ModelTimeout),
        (lambda p=package: instance(p.APIResponseValidationError), ProtocolError),
        (lambda p=package: instance(p.APIError), ProtocolError),
        (lambda p=package: httpx2.ConnectError("no"), ConnectionFailed),
        (lambda p=package: httpx2.ReadTimeout("no"), ConnectionFailed),
    )
]


@pytest.mark.parametrize(("package", "make", "wanted"), EXPECTED)
async def test_what_came_without_a_response_is_typed(package: Any, make: Any, wanted: type[ModelError]) -> None:
    assert type(await of_failing(package, make())) is wanted


async def test_an_error_that_asks_for_another_attempt_is_one_that_passes() -> None:
    error = await of_failing(anthropic, anthropic.RetryableError("once more"))
    assert error.retryable


async def test_missing_credentials_are_told_as_that() -> None:
    assert type(await of_failing(anthropic, anthropic.CredentialsError("none found"))) is AuthenticationFailed
