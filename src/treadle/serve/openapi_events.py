"""OpenAPI events: what comes over a stream, described by the types of what is written to it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from treadle.drivers.watching import SpentSoFar
from treadle.kernel.events import Event
from treadle.serve.refused import Why
from treadle.serve.shapes import Below, Delta, End, Other, Progress

Schema = dict[str, Any]

_SHOWN: Final[Mapping[str, Any]] = {
    "delta": Delta,
    "progress": Progress,
    "spent": SpentSoFar,
    "below": Below,
    "other": Other,
}
"""What is shown live, by the name under which it comes."""

_LAST: Final[Mapping[str, Any]] = {"end": End, "error": Why}

KINDS: Final = (*get_args(Event), *_SHOWN.values(), *_LAST.values())
"""The types of all that may come."""


def event_schemas(schemas: Iterable[Schema], components: Mapping[str, Schema]) -> dict[str, Schema]:
    """The further components that describe a stream: `StoredEvent`, `Shown` and `StreamEvent`, and each stored one.

    Args:
        schemas: those of `KINDS`, in that order.
        components: what they refer to.
    """
    given = iter(schemas)
    stored = {one.__name__: next(given) for one in get_args(Event)}
    shown = {name: next(given) for name in _SHOWN}
    last = {name: next(given) for name in _LAST}
    written = {f"{name}Event": _written(components[_name(one)]) for name, one in stored.items()}
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in written]
    kinds = [kind for one in written.values() for kind in one["properties"]["type"]["enum"]]
    event = {"$ref": "#/components/schemas/StoredEvent"}
    numbered = {"id": {"type": "integer"}, "event": {"enum": kinds}, "data": {**event, "required": ["number"]}}
    return {
        **written,
        "StoredEvent": {
            "description": "An event of a run's journal; `number` counts from 1.",
            "anyOf": refs,
            "discriminator": {
                "propertyName": "type",
                "mapping": dict(zip(kinds, (r["$ref"] for r in refs), strict=True)),
            },
        },
        "Shown": {"description": "Something that is shown live.", "anyOf": [*shown.values(), event]},
        "StreamEvent": {
            "description": "One server-sent event; `data` is sent as JSON on one line.",
            "anyOf": [
                _sent(numbered),
                *(_sent({"event": {"enum": [name]}, "data": one}) for name, one in (shown | last).items()),
            ],
        },
    }


def _written(stored: Schema) -> Schema:
    """A stored event as `forms.event_json` writes it: with its number, and tagged by `type`."""
    properties = dict(stored["properties"])
    tag = properties.pop("event")
    required = ["type" if name == "event" else name for name in stored["required"]]
    return {**stored, "properties": {"number": {"type": "integer"}, "type": tag, **properties}, "required": required}


def _sent(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _name(schema: Schema) -> str:
    name: str = schema["$ref"].rpartition("/")[2]
    return name
