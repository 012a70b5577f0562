"""Waiting: a question of a server in the middle of a call, for which the run waits (`ask="pause"`).

In the newest era of the protocol a server that wants to know something ends the call with its questions and a word of
its own, and goes on when it is called again with the answers and that word. So the run can wait, and be taken up
elsewhere.
"""

import json
from collections.abc import Mapping, Sequence, Set
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
    question = "; ".join(words)
    again = json.dumps({"state": found.request_state, "schemas": schemas, "question": question})
    if len(again) > MOST_KEPT:
        return ToolError(
            f"{server} wants more kept than {MOST_KEPT:,} characters of forms and of what it is given back"
        )
    if secrets.hidden(again) != again:
        return ToolError(f"{server} wants to be given back what must not be written down")
    return AsksPerson(question, again)


def answers_to(again: str, answer: Any) -> tuple[dict[str, Any], str | None]:
    """What the server is sent with its word: the answer to each question; None declines.

    Raises:
        AsksPerson: the answer does not fit the question, which is asked again.
    """
    from mcp_types import ElicitResult

    kept = json.loads(again)
    schemas: Mapping[str, Any] = kept["schemas"]
    given = data_of(answer)
    several = len(schemas) > 1 and isinstance(given, Mapping)
    found = {}
    for key, schema in schemas.items():
        try:
            one = filled(given.get(key) if several else given, schema, "" if several else answer)
        except ToolError as error:
            raise asked_again(error, kept.get("question", ""), again) from error
        found[key] = ElicitResult(action="decline") if one is None else ElicitResult(action="accept", content=one)
    return found, kept["state"]


def asked_again(error: ToolError, question: str, again: str) -> AsksPerson:
    """The question once more, after what is wrong with the answer."""
    return AsksPerson(f"{error.message}. {question}", again)


def form_of(schema: Mapping[str, Any]) -> str:
    """What is to be filled in, on a line: each field with what it takes."""
    fields = _fields(schema)
    told = ", ".join(f"{name}: {_takes(one)}" for name, one in fields.items())
    return told if len(told) <= LONGEST_QUESTION else f"{told[:LONGEST_QUESTION]} […]"


def _takes(field: Any) -> str:
    """What a field takes, in words."""
    kind = str(field.get("type", "text")) if isinstance(field, Mapping) else "text"
    choices = choices_of(field)
    if not choices:
        return kind
    listed = " | ".join(value if title == value else f"{value} ({title})" for value, title in choices.items())
    return f"some of {listed}" if kind == "array" else listed


def choices_of(field: Any) -> dict[str, str]:
    """What can be chosen in a field, with the titles of it; nothing where anything can be written.

    Elicitations have four forms of them: `enum`, with `enumNames` or without, and `oneOf` of titled constants; for
    several, the same under `items`, with `anyOf`.
    """
    if not isinstance(field, Mapping):
        return {}
    if isinstance(field.get("items"), Mapping):
        field = field["items"]
    found = dict[str, str]()
    for one in (*_list(field.get("oneOf")), *_list(field.get("anyOf"))):
        if isinstance(one, Mapping) and "const" in one:
            found[str(one["const"])] = str(one.get("title", one["const"]))
    values, names = _list(field.get("enum")), _list(field.get("enumNames"))
    for value, name in zip(values, names if len(names) == len(values) else values, strict=True):
        found[str(value)] = str(name)
    return found


def _list(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else ()


def data_of(answer: Any) -> Any:
    """The answer as data: what a person types at a terminal may be JSON."""
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer


def filled(answer: Any, schema: Mapping[str, Any], written: Any = "") -> Any:
    """The form filled in, with what it has for what was left out; where only one field takes the answer, that need not
    name it. None declines.

    Args:
        answer: as data.
        schema: the form.
        written: the text that it was read from, if it was one.

    Raises:
        ToolError: the answer names no field, and several might be meant; it names one that is none; or it does not fit.
    """
    if answer is None:
        return None
    fields = _fields(schema)
    if isinstance(answer, Mapping):
        return _fitting(with_defaults(_chosen(answer, fields), schema), schema)
    required = schema.get("required")
    name = _field_for(answer, fields, {str(one) for one in required} if isinstance(required, list) else set())
    if name is None:
        raise ToolError(f"the answer is to be an object with {', '.join(fields)}")
    kind = fields[name].get("type") if isinstance(fields[name], Mapping) else None
    if kind == "boolean" and isinstance(answer, str):
        answer = _WORDS.get(answer.strip().lower(), answer)
    if kind == "array" and not isinstance(answer, list):
        answer = [answer]
    given = {name: _text(answer, written) if kind == "string" else answer}
    return _fitting(with_defaults(_chosen(given, fields), schema), schema)


def _text(answer: Any, written: Any) -> str:
    """What a field for text is given: `1.10` as it was written, and not the number, which is 1.1."""
    if isinstance(answer, str):
        return answer
    return written if written and isinstance(written, str) else json.dumps(answer, ensure_ascii=False, default=str)


def _fitting(answer: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, which has to fit the form where that is one: it is the server's word, and may be anything."""
    import jsonschema_rs

    fields = _fields(schema)
    stray = [name for name in answer if name not in fields]
    if stray and fields and not schema.get("additionalProperties"):
        raise ToolError(f"the answer has {stray[0]!r:.100}, and it is to be an object with {', '.join(fields)}")
    try:
        checker = jsonschema_rs.validator_for(dict(schema), offline=True)
    except (ValueError, TypeError):
        return answer
    if (wrong := next(checker.iter_errors(answer), None)) is not None:
        where = "".join(f"{one}: " for one in wrong.instance_path)
        raise ToolError(f"the answer does not fit: {where}{wrong.message}"[:LONGEST_QUESTION])
    return answer


def _chosen(answer: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer, of which each field has what can be chosen there."""
    for name, value in answer.items():
        choices = choices_of(fields.get(name))
        given = value if isinstance(value, list) else [value]
        if choices and not all(str(one) in choices for one in given):
            raise ToolError(f"{name} is to be {_takes(fields[name])[:LONGEST_QUESTION]}")
    return answer


def _field_for(answer: Any, fields: Mapping[str, Any], required: Set[str]) -> str | None:
    """The field that an answer is meant for: the only one, that which has it as a choice, or that for free text."""
    if len(fields) == 1:
        return next(iter(fields))
    having = [name for name, one in fields.items() if str(answer) in choices_of(one)]
    free = [name for name, one in fields.items() if isinstance(one, Mapping) and one.get("type") == "string"]
    found = having or [name for name in free if not choices_of(fields[name])]
    return found[0] if len(found) == 1 and required <= {found[0]} else None


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a form; it is the server's word, and may be anything."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def with_defaults(found: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The answer with what the schema gives for what was left out."""
    answer = dict(found)
    for name, one in _fields(schema).items():
        if name not in answer and isinstance(one, Mapping) and "default" in one:
            answer[name] = one["default"]
    return answer
