"""Gemini over HTTP: the dialect of generateContent joined to Google's two addresses, the Gemini API and Vertex.

Neighbours: `treadle.models.http_model`, which does the work; `treadle.models.google`, the dialect.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Unpack
from urllib.parse import quote

from anyio import to_thread

from treadle.kernel.errors import Misuse
from treadle.models.errors import AuthenticationFailed, ConnectionFailed
from treadle.models.failures import redact
from treadle.models.google import GoogleCodec
from treadle.models.hidden import Hidden
from treadle.models.http_model import HttpModel, HttpOptions
from treadle.models.providers import PROVIDERS, google_address

Token = Callable[[], str | Awaitable[str]]
"""What gives an access token for Google Cloud, such as `google.auth` makes; asked before each request."""

KEPT: Final = 8
"""How many access tokens are remembered, to be taken out of what servers say."""

PLACE: Final = re.compile(r"[a-z0-9][a-z0-9:.-]*", re.IGNORECASE)


class GoogleModel(HttpModel):
    """A model that speaks Google's generateContent: Gemini, at the Gemini API or at Vertex.

    Args:
        model: the model's name, as Google knows it.
        project: the Google Cloud project that pays, to use Vertex; then `token` authenticates, and no key is needed.
        location: where Vertex is to run the model: a region such as "europe-west1", "us", "eu", or "global".
        token: gives an access token, itself or by an awaitable; asked before each request, in a thread if it is no
            coroutine function, so it may wait, and should keep a token as long as that is valid.
        options: see `HttpOptions`. `base_url` may leave the version of the API out.

    Raises:
        MissingKey: no `token` is given, and there is no key.
        Misuse: an option cannot be right, or the options exclude one another.
    """

    def __init__(
        self,
        model: str,
        *,
        project: str | None = None,
        location: str = "global",
        token: Token | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        if options.get("client") is not None:
            raise Misuse(
                "GoogleModel takes no client=: for Vertex give project=, location= and token=, a function that gives "
                "an access token; for the Gemini API give api_key="
            )
        self._token, self._headers = token, options.get("headers") or {}
        name = model
        for prefix in ("models/", "publishers/google/models/"):
            name = name.removeprefix(prefix) if isinstance(name, str) else name
        self._tokens: tuple[str, ...] = ()
        base_url = options.get("base_url")
        if project is not None:
            if token is None or base_url is not None:
                raise Misuse(
                    "GoogleModel takes project= (Vertex) with token=, a function that gives an access token, and "
                    "without base_url="
                )
            options["base_url"] = vertex_address(project, location, name)
        elif isinstance(base_url, str):
            options["base_url"] = google_address(base_url.strip())
        if token is not None:
            if not callable(token):
                raise Misuse(
                    f"GoogleModel takes token= as a function; it was given a value of type {type(token).__name__}"
                )
            if options.get("api_key") is not None:
                raise Misuse("GoogleModel takes either token= or api_key=, not both")
            # What the environment holds for the Gemini API does not go with a token.
            options["api_key"] = ""
            self._sign = self._bearer
        super().__init__(name, PROVIDERS["google"], GoogleCodec(), **options)

    async def _bearer(self, url: str, body: bytes) -> Mapping[str, str]:
        """The header that authenticates a request. Raises `AuthenticationFailed` if there is no token."""
        ask = self._token
        if ask is None:
            return {}
        try:
            given = ask() if inspect.iscoroutinefunction(ask) else await to_thread.run_sync(ask)
            token = await given if inspect.isawaitable(given) else given
        except Exception as problem:
            told = f"token= raised {type(problem).__name__}: {redact(str(problem))}"
            # google-auth says of its errors whether they may pass.
            network = (
                isinstance(problem, (ConnectionError, TimeoutError)) or getattr(problem, "retryable", False) is True
            )
            raise (ConnectionFailed if network else AuthenticationFailed)(told) from None
        token = token.strip() if isinstance(token, str) else ""
        if not (token and token.isascii() and token.isprintable()):
            raise AuthenticationFailed("token= gave nothing that can be sent as an access token")
        if token not in self._tokens:
            # Only to be taken out of messages; a request under way may have an earlier one.
            self._tokens = (*self._tokens[1 - KEPT :], token)
            known = {f"token {place}": one for place, one in enumerate(self._tokens)}
            self._hidden = Hidden(token, {**self._headers, **known})
        return {"authorization": f"Bearer {token}"}

    def _advice(self) -> str:
        if self._token is None:
            return super()._advice()
        return "Check the access token that token= gives, and what it may use"


def vertex_address(project: str, location: str, model: str) -> str:
    """Where Vertex has `model`: Google's own by their names, others by a path such as "endpoints/1".

    Source: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations
    """
    for name, value in (("project", project), ("location", location)):
        if not isinstance(value, str) or not PLACE.fullmatch(value):
            raise Misuse(
                f"GoogleModel takes {name} as Google Cloud has it, such as 'europe-west1'; it was given {value!r}"
            )
    if location == "global":
        host = "aiplatform.googleapis.com"
    elif location in ("us", "eu"):
        host = f"aiplatform.{location}.rep.googleapis.com"
    else:
        host = f"{location}-aiplatform.googleapis.com"
    publisher = "" if isinstance(model, str) and "/" in model else "/publishers/google"
    return f"https://{host}/v1/projects/{quote(project, safe=':')}/locations/{location}{publisher}"
