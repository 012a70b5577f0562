"""Typed: the answer of an agent that has a type, as structured content, and what is listed of its form."""

import json
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_jsonable_python

from treadle.agent import Agent
from treadle.drivers.below import Below
from treadle.drivers.output import WRAPPED, in_an_object
from treadle.kernel.messages import Json
from treadle.result import RunResult
from treadle.tools import Tool
from treadle.tools.arguments import schema_of_result

_LONGEST_FAULT: Final = 500


class Typed:
    """The structured content of an agent's answers, in the form of their type as Pydantic writes it.

    Structured content is an object, in all versions of the protocol: an answer that is none stands in one, under
    "result".

    Args:
        agent: whose answers they are.

    Attributes:
        schema: the JSON Schema of it; None where the answers have no type, or none that JSON Schema can tell, or
            not every one of them: if another agent may go on with the conversation, or a tool may end the run.
    """

    def __init__(self, agent: Agent[Any, Any]) -> None:
        output = agent._config.output
        self.schema: Json | None = None
        if output is None or any(_ends_otherwise(one) for one in agent.tools.values()):
            return
        import jsonschema_rs

        schema = schema_of_result(output.kind)
        if schema is None:
            return
        self._wrapped = schema.get("type") != "object"
        listed = in_an_object(schema) if self._wrapped else schema
        try:
            self._validator = jsonschema_rs.validator_for(listed, offline=True)
        except ValueError:
            # It has a pattern, say, that is Python's alone: a client could not check it either.
            return
        self.schema, self._kind = listed, output.kind

    def content(self, result: RunResult[Any]) -> Json | None:
        """The structured content of a run that is finished; None if its answer has no form.

        Raises:
            ValueError: it has another form than the schema says.
        """
        if self.schema is None:
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
        value = json.loads(written)
        data = {WRAPPED: value} if self._wrapped else value
        wrong = next(self._validator.iter_errors(data), None)
        if wrong is not None:
            raise ValueError(wrong.message[:_LONGEST_FAULT])
        found: Json = data
        return found


def _ends_otherwise(tool: Tool) -> bool:
    """Whether a call of it may end a run with something else than the agent's own answer."""
    hands_on = isinstance(tool.agent, Below) and tool.agent.final
    return hands_on or (tool.external and not tool.wait)
