"""Asking: what a server wants of the person in the middle of a call, such as a confirmation (an elicitation)."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.mcp.secrets import Secrets

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult


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


async def answered(
    ask: Ask, server: str, params: "ElicitRequestParams", secrets: Secrets, loop: asyncio.AbstractEventLoop | None
) -> "ElicitResult":
    """What the person answers. `ask` is called in the event loop of the application, where there is one."""
    from mcp_types import ElicitResult

    schema, url = getattr(params, "requested_schema", None), getattr(params, "url", None)
    question = Question(server, secrets.hidden(params.message), schema, url)
    if loop is None or loop.is_closed():
        return ElicitResult(action="cancel")
    found = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_asked(ask, question), loop))
    if found is None:
        return ElicitResult(action="decline")
    return ElicitResult(action="accept", content=None if url is not None else _with_defaults(dict(found), schema))


async def _asked(ask: Ask, question: Question) -> Mapping[str, Any] | None:
    found = ask(question)
    return await found if inspect.isawaitable(found) else found


def _with_defaults(answer: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The answer with what the schema gives for what was left out."""
    said = schema if isinstance(schema, Mapping) else schema.model_dump(by_alias=True, exclude_none=True)
    for name, one in (said.get("properties") or {}).items():
        if name not in answer and isinstance(one, Mapping) and "default" in one:
            answer[name] = one["default"]
    return answer
