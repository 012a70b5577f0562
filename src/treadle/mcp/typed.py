"""Typed: what is listed of the form of an answer or a result, and what is given of it as structured content.

Structured content is an object, in all versions of the protocol: what is none stands in one, under "result".
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from treadle.agent import Agent
from treadle.drivers.below import below_of
from treadle.drivers.output import WRAPPED, in_an_object
from treadle.kernel.messages import Content, Json
from treadle.result import RunResult
from treadle.tools import Tool
from treadle.tools.arguments import schema_of_result

_LONGEST_FAULT: Final = 500

_ANY: Final = "a text that is of no form", ["a text", 0.5, {"a name": None}]
"""What has a form only where that takes any text, or any list: images and files may be in one."""


class Form:
    """A form that is listed, and held to.

    Args:
        schema: the JSON Schema of the values.

    Attributes:
        schema: that of the structured content.

    Raises:
        ValueError: it cannot be held to: it has a pattern, say, that is Python's alone. A client could not either.
    """

    def __init__(self, schema: Json) -> None:
        import jsonschema_rs

        self._wrapped = schema.get("type") != "object"
        self.schema = in_an_object(schema) if self._wrapped else schema
        self._validator = jsonschema_rs.validator_for(self.schema, offline=True)

    def content(self, value: Any) -> Json:
        """The structured content that has `value`.

        Raises:
            ValueError: the value has another form.
        """
        data: Json = {WRAPPED: value} if self._wrapped else value
        wrong = next(self._validator.iter_errors(data), None)
        if wrong is not None:
            raise ValueError(wrong.message[:_LONGEST_FAULT])
        return data

    def takes(self, value: Any) -> bool:
        """Whether `value` has the form."""
        try:
            self.content(value)
        except ValueError:
            return False
        return True


def form_of(schema: Json | None) -> Form | None:
    """The form of what has that JSON Schema; None if it has none that JSON Schema can tell."""
    if schema is None:
        return None
    try:
        return Form(schema)
    except ValueError:
        return None


def form_of_results(tool: Tool) -> Form | None:
    """The form of what the tool gives; None if it may give any text, which can be read in one way only as it is, or any
    list, which may be one of parts that are no JSON.
    """
    found = form_of(tool.spec.output_schema)
    return None if found is None or any(found.takes(one) for one in _ANY) else found


def content_of(form: Form, given: str | Sequence[Content]) -> Json:
    """The structured content of a result, which is JSON text, or a text that is the value.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(given, str):
        raise ValueError("it gave images or files")
    try:
        return form.content(_json(given))
    except ValueError as error:
        try:
            return form.content(given)
        except ValueError:
            raise error from None


def _json(text: str) -> Any:
    """The value of JSON text. Raises ValueError for what cannot be sent as it stands, too: half a character, a number
    that no float holds (it would be null), or what is nested too deep.
    """
    try:
        value = msgspec.json.decode(text)
        # As deep as it stands in the message: the other side has a bound too.
        from_json(to_json([[[[value]]]]))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return value


class Typed:
    """The structured content of an agent's answers, in the form of their type as Pydantic writes it.

    Args:
        agent: whose answers they are.

    Attributes:
        schema: the JSON Schema of it; None where the answers have no type, or none that JSON Schema can tell, or
            not every one of them: if another agent may go on with the conversation, or a tool may end the run.
    """

    def __init__(self, agent: Agent[Any, Any]) -> None:
        output = agent._config.output
        self._form: Form | None = None
        if output is not None and not any(_ends_otherwise(one) for one in agent.tools.values()):
            self._form, self._kind = form_of(schema_of_result(output.kind)), output.kind
        self.schema = None if self._form is None else self._form.schema

    def content(self, result: RunResult[Any]) -> Json | None:
        """The structured content of a run that is finished; None if its answer has no form.

        Raises:
            ValueError: it has another form than the schema says.
        """
        if self._form is None:
            data = None if result.output is None else to_jsonable_python(result.output)
            return data if isinstance(data, dict) else None
        if result.output is None and result.stop.reason != "answered":
            # A null that was answered is another thing.
            raise ValueError("it gave none")
        from pydantic import TypeAdapter

        try:
            written = TypeAdapter(self._kind).dump_json(result.output, by_alias=True, warnings=False)
        except PydanticSerializationError as error:
            raise ValueError(str(error)[:_LONGEST_FAULT]) from error
        return self._form.content(json.loads(written))


def _ends_otherwise(tool: Tool) -> bool:
    """Whether a call of it may end a run with something else than the agent's own answer."""
    below = below_of(tool)
    return (below is not None and below.final) or (tool.external and not tool.wait)
