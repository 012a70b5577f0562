"""The type that an answer must have: its JSON Schema for the model, and the reading of what the model wrote."""

import re
from typing import Any

import msgspec

from treadle.drivers.configuration import Output
from treadle.kernel.errors import Misuse
from treadle.tools.arguments import schema_of

FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)


def output_type(output: Any) -> Output:
    """The `Output` for a Pydantic model, a dataclass, a TypedDict, or any other type that Pydantic knows.

    Raises:
        Misuse: it is not such a type.
    """
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output)
        schema = schema_of(adapter)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise Misuse(f"output takes a type that Pydantic can read from JSON; it was given {output!r}") from error
    name = getattr(output, "__name__", str(output))

    def read(text: str) -> Any:
        wanted = "Reply with JSON alone that satisfies the schema in your instructions."
        try:
            return adapter.validate_json(json_in(text))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}" for fault in error.errors()[:5]
            )
            raise ValueError(f"{faults}. {wanted}") from error

    instructions = (
        "When you have the answer, reply with JSON alone, without any other text, that satisfies this JSON Schema:\n"
        + msgspec.json.encode(schema).decode()
    )
    return Output(name, schema, read, instructions)


def json_in(text: str) -> str:
    """The JSON in a reply: the one fenced block that it has, else all of it."""
    blocks = FENCE.findall(text)
    return blocks[0] if len(blocks) == 1 else text.strip()
