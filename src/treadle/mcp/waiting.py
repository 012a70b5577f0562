"""Waiting: a question of a server in the middle of a call, for which the run waits (`ask="pause"`).

In the newest era of the protocol a server that wants to know something ends the call with its questions and a word of
its own, and goes on when it is called again with the answers and that word. So the run can wait, and be taken up
elsewhere.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from treadle.mcp.secrets import Secrets
from treadle.tools import ToolError
from treadle.tools.errors import AsksPerson

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

MOST_ROUNDS: Final = 20
"""Times that a server may have the same call made again without asking anything."""

MOST_KEPT: Final = 100_000
"""Characters of the forms that it wants filled in and of what it is given back: they stand in the run's journal."""

LONGEST_QUESTION: Final = 4_000
"""Characters of what it asks that the person is shown."""

_WORDS = {"yes": True, "y": True, "no": False, "n": False}


def question_of(found: "InputRequiredResult", server: str, secrets: Secrets) -> ToolError:
    """What the person is to be asked, with what the server is given back; or that it wants what it may not have."""
    words, schemas = list[str](), dict[str, Any]()
    for key, request in (found.input_requests or {}).items():
        schema = getattr(request.params, "requested_schema", None)
        if request.method != "elicitation/create" or schema is None:
            return ToolError(f"{server} asks for what it may not have: {request.method}")
        told = secrets.hidden(request.params.message)
        told = told if len(told) <= LONGEST_QUESTION else f"{told[:LONGEST_QUESTION]} […]"
        words.append(f"{server} asks: {told} ({form_of(schema)})")
        schemas[key] = schema
    again = json.dumps({"state": found.request_state, "schemas": schemas})
    if len(again) > MOST_KEPT:
        return ToolError(
            f"{server} wants more kept than {MOST_KEPT:,} characters of forms and of what it is given back"
        )
    if secrets.hidden(again) != again:
        return ToolError(f"{server} wants to be given back what must not be written down")
    return AsksPerson("; ".join(words), again)


def answers_to(again: str, answer: Any) -> tuple[dict[str, Any], str | None]:
    """What the server is sent with its word: the answer to each question; None declines."""
    from mcp_types import ElicitResult

    kept = json.loads(again)
    schemas: Mapping[str, Any] = kept["schemas"]
    given = data_of(answer)
    several = len(schemas) > 1 and isinstance(given, Mapping)
    found = {}
    for key, schema in schemas.items():
        one = filled(given.get(key) if several else given, schema)
        found[key] = ElicitResult(action="decline") if one is None else ElicitResult(action="accept", content=one)
    return found, kept["state"]


def form_of(schema: Mapping[str, Any]) -> str:
    """What is to be filled in, on a line."""
    fields: Mapping[str, Any] = schema.get("properties") or {}
    kinds = {name: one.get("type", "text") if isinstance(one, Mapping) else "text" for name, one in fields.items()}
    return ", ".join(f"{name}: {kind}" for name, kind in kinds.items())


def data_of(answer: Any) -> Any:
    """The answer as data: what a person types at a terminal may be JSON."""
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(answer)
    except ValueError:
        return answer


def filled(answer: Any, schema: Mapping[str, Any]) -> Any:
    """The form filled in; where it has one field, the answer need not name it. None declines.

    Raises:
        ToolError: the form has other fields than one, and the answer names none.
    """
    if answer is None or isinstance(answer, Mapping):
        return answer
    fields = schema.get("properties") or {}
    if len(fields) != 1:
        raise ToolError(f"the answer is to be an object with {', '.join(fields)}; nothing was called", executed=False)
    ((name, one),) = fields.items()
    kind = one.get("type") if isinstance(one, Mapping) else None
    if kind == "boolean" and isinstance(answer, str):
        answer = _WORDS.get(answer.strip().lower(), answer)
    return {name: str(answer) if kind == "string" else answer}
