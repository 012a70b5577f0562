"""Tools without a function: calling one ends the run with its arguments, or pauses it for a result from outside."""

from typing import Any, Unpack

from msgspec.structs import replace

from treadle.kernel.messages import Json, ToolSpec
from treadle.tools.arguments import Arguments, from_json_schema, from_type
from treadle.tools.options import ToolOptions, check_name
from treadle.tools.tool import Tool


def external_tool(name: str, description: str, input: Any = None, wait: bool = False) -> Tool:
    """A tool that somebody else carries out: the application, a person, or nobody (a `done` tool).

    Args:
        name: what the model calls.
        description: what the model is told it is for.
        input: its arguments: a JSON Schema of an object, or a Pydantic model, dataclass or TypedDict; None for none.
        wait: whether the run pauses until a result is brought; otherwise calling the tool ends the run, and its
            arguments are the answer.

    Raises:
        BadTool: the name or the input cannot be used.
    """
    check_name(name, "external_tool", description)
    if input is None:
        input = {"type": "object", "properties": {}, "additionalProperties": False}
    arguments: Arguments
    arguments = from_json_schema(name, input, None, "") if isinstance(input, dict) else from_type(name, input)
    # Whoever carries it out is given the arguments as the model wrote them.
    arguments = replace(arguments, numbers=replace(arguments.numbers, written=True))
    return Tool(spec=ToolSpec(name, description, arguments.schema), arguments=arguments, external=True, wait=wait)


def agent_tool(name: str, description: str, input: Json, agent: object, **options: Unpack[ToolOptions]) -> Tool:
    """A tool whose calls an agent works on; `input` is the JSON Schema of its arguments.

    Raises:
        BadTool: the name cannot be used.
    """
    check_name(name, "as_tool", description)
    arguments = from_json_schema(name, input, None, "")
    spec = ToolSpec(name, description, arguments.schema)
    given: ToolOptions = {"effect": "idempotent", "timeout": None, **options}
    return Tool(spec=spec, arguments=arguments, agent=agent, **given)
