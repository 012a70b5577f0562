"""What a tool returns, by its schema. Read by `toolbox`."""

from dataclasses import dataclass

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.schemas import resolve, types_of


@dataclass(frozen=True)
class Output:
    """A field that a tool returns: its words and JSON types."""

    name: str
    stems: tuple[str, ...]
    types: frozenset[str]


def read_outputs(schema: Json, root: Json, depth: int) -> list[Output]:
    """The fields that an output schema tells of, those of its lists and objects among them."""
    found: list[Output] = []
    schema = resolve(schema, root)
    if "items" in schema and depth < 4:
        found += read_outputs(schema["items"], root, depth + 1)
    for name, inner in schema.get("properties", {}).items():
        inner = resolve(inner, root)
        stems = tuple(stem(word) for word in parts(name))
        found.append(Output(name, stems, types_of(inner)))
        if depth < 4:
            found += read_outputs(inner, root, depth + 1)
    return found
