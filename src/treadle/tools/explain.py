"""Turns what a validator found into words and hints that a model can act on.

Both validators (Pydantic's and JSON Schema's) report faults at a path inside the arguments; a `Fault` holds one of
them, and `explain` makes an `InvalidArguments` of all. What would be valid is read from the schema that the model was
shown.
"""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

from treadle.kernel.messages import Json
from treadle.tools.errors import InvalidArguments, did_you_mean, nearest

Path = tuple[str | int, ...]
Kind = Literal["unknown", "missing", "name", "wrong"]
_MOST_FAULTS = 5
_ORDER = ("unknown", "missing", "name", "wrong")  # a name that is misspelt explains the one that is missing
_MOST_VALUES = 50
_LONGEST_VALUE = 200


class Fault(Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        path: where in the arguments; for something missing or unknown, its own name is the last part.
        kind: whether it is missing, unknown, has a value that is wrong, or an entry whose name is.
        message: what the validator said of a wrong value or name, as the rest of a sentence that begins with it.
        given: the wrong value, or name.
    """

    path: Path
    kind: Kind
    message: str = ""
    given: Any = None


def explain(tool: str, schema: Json, faults: Sequence[Fault]) -> InvalidArguments:
    """The error that tells the model of `faults`, the first of them also in the hints at the top."""
    merged = sorted(_merged(faults), key=lambda fault: _ORDER.index(fault.kind))
    told = [_tell(schema, fault) for fault in merged[:_MOST_FAULTS]]
    sentences = [sentence for sentence, _ in told]
    if len(merged) > _MOST_FAULTS:
        sentences.append(f"and {len(merged) - _MOST_FAULTS} more")
    hints = dict(told[0][1])
    if len(told) > 1:
        hints["errors"] = [{"message": sentence, **each} for sentence, each in told]
    return InvalidArguments(f"{tool}: " + "; ".join(sentences), **hints)


def pydantic_faults(errors: Sequence[Any], data: Any) -> list[Fault]:
    """The faults in Pydantic's error list; the parts of its paths that name union members are left out."""
    faults = []
    for error in errors:
        match error["type"]:
            case "missing" | "missing_argument" | "missing_keyword_only_argument":
                faults.append(Fault((*_path(error["loc"][:-1], data), error["loc"][-1]), "missing"))
            case "extra_forbidden" | "unexpected_keyword_argument":
                path = (*_path(error["loc"][:-1], data), error["loc"][-1])
                faults.append(Fault(path, "unknown", given=error["input"]))
            case _ if (place := _of_name(error["loc"], data)) is not None:
                faults.append(Fault(place[:-1], "name", _sentence(error["msg"]), place[-1]))
            case _:
                path = _path(error["loc"], data)
                faults.append(Fault(path, "wrong", _sentence(error["msg"]), _at(data, path)))
    return faults


def schema_faults(errors: Sequence[Any]) -> list[Fault]:
    """The faults in the error list of the JSON Schema validator."""
    faults = []
    for error in errors:
        path = tuple(error.instance_path)
        details = error.kind.as_dict()
        match type(error.kind).__name__.rpartition("_")[2]:
            case "Required":
                faults.append(Fault((*path, details["property"]), "missing"))
            case "AdditionalProperties" | "UnevaluatedProperties":
                faults += [Fault((*path, name), "unknown") for name in details["unexpected"]]
            case _:
                faults.append(Fault(path, "wrong", f"is not right: {error.message[:300]}", error.instance))
    return faults


def example(schema: Json) -> str:
    """The JSON text of arguments of the right form: the required ones, with values that stand for others."""
    required = schema.get("required")
    return json.dumps({name: _placeholder(schema, name) for name in required} if isinstance(required, list) else {})


def _placeholder(schema: Json, name: str) -> Any:
    values = _values_at(schema, (name,))
    if values:
        return values[0]
    kinds = [kind for node in _nodes_at(schema, (name,)) if isinstance(kind := node.get("type"), str)]
    stands: Json = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}
    return stands.get(kinds[0], "text") if kinds else "..."


def name_of(path: Path) -> str:
    """A path as it is written: `filters[0].column`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text[:_LONGEST_VALUE] or "(all)"


def _tell(schema: Json, fault: Fault) -> tuple[str, dict[str, Any]]:
    name = name_of(fault.path)
    hints: dict[str, Any] = {"argument": name}
    if fault.kind == "missing":
        return f"the argument {name!r} is missing", hints
    if fault.kind == "unknown":
        valid = _names_at(schema, fault.path[:-1])
        hints |= {"given": _short(fault.path[-1]), "available": valid[:_MOST_VALUES]}
        like = nearest(fault.path[-1], valid)
        among = f" (there are: {', '.join(valid[:20])})" if valid else " (it takes none)"
        sentence = f"there is no argument {name!r}{did_you_mean(like)}{among}"
    elif fault.kind == "name":
        hints["given"] = _short(fault.given)
        values = _names_listed_at(schema, fault.path)
        like = nearest(fault.given, [str(value) for value in values])
        if values:
            hints["available"] = values[:_MOST_VALUES]
            listed = ", ".join(_said(value) for value in values[:20])
            sentence = f"the name {hints['given']!r} in {name!r} is none of {listed}{did_you_mean(like)}"
        else:
            sentence = f"the name {hints['given']!r} in {name!r} {fault.message}"
    else:
        given = _short(fault.given)
        hints["given"] = given
        values = _values_at(schema, fault.path)
        like = None
        if values:
            hints["available"] = values[:_MOST_VALUES]
            listed = ", ".join(_said(value) for value in values[:20])
            # By how they are written: the text "1" is like the number 1, which is what is meant.
            written = {_written(value): value for value in values}
            near = nearest(_written(fault.given), written)
            like = None if near is None else written[near]
            meant = "" if near is None else f"; did you mean {_said(like)}?"
            sentence = f"the argument {name!r} cannot be {_said(given)}; it is one of {listed}{meant}"
        else:
            sentence = f"the argument {name!r} {fault.message}; given was {_said(given)}"
    if like is not None:
        hints["nearest"] = like
    return sentence, hints


def _said(value: Any) -> str:
    """A value in a sentence for the model: a text between quotes, and all else as JSON writes it."""
    return repr(value) if isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    from pydantic_core import to_json

    return value if isinstance(value, str) else to_json(value, inf_nan_mode="strings", serialize_unknown=True).decode()


def _merged(faults: Sequence[Fault]) -> Iterator[Fault]:
    """One fault a place: a union's members each complain of the same value."""
    seen: dict[tuple[Path, Kind, str], list[Fault]] = {}
    for fault in faults:
        # Of one object several names may be wrong.
        name = fault.given if fault.kind == "name" else ""
        seen.setdefault((fault.path, fault.kind, name), []).append(fault)
    for (path, kind, _), group in seen.items():
        messages = list(dict.fromkeys(fault.message for fault in group))
        yield Fault(path, kind, ", or ".join(messages[:4]), group[0].given)


def _sentence(message: str) -> str:
    if message.startswith("Input should"):
        return "should" + message.removeprefix("Input should")
    return f"is not right: {message.removeprefix('Value error, ').removeprefix('Assertion failed, ')}"


def _path(loc: Sequence[str | int], data: Any) -> Path:
    path: list[str | int] = []
    for part in loc:
        is_index = isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)
        if is_index or (isinstance(data, dict) and part in data):
            data = data[part]
            path.append(part)
    return tuple(path)


def _of_name(loc: Sequence[str | int], data: Any) -> Path | None:
    """The path to the entry whose name is at fault and not its value; None if it is none."""
    for at, part in enumerate(loc):
        path = _path(loc[:at], data)
        inside: Any = _at(data, path)
        # An entry may be called so.
        if part == "[key]" and path and path[-1] == loc[at - 1] and not (isinstance(inside, dict) and part in inside):
            return path
    return None


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _short(value: Any) -> Any:
    """A value that is safe to repeat to the model: what is long is cut."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and value.bit_length() < 200:
        return value
    text = (
        str(value)
        if isinstance(value, str | Decimal)
        else f"an integer of {value.bit_length()} bits"
        if isinstance(value, int)
        else None
    )
    if text is None:
        text = _written(value)
        if len(text) <= _LONGEST_VALUE:
            return value
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _expanded(schema: Json, node: Any, depth: int = 0) -> Iterator[Json]:
    """`node` and what it refers to or combines."""
    if not isinstance(node, dict) or depth > 8:
        return
    yield node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = schema
        for part in reference[2:].split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        yield from _expanded(schema, target, depth + 1)
    for combiner in ("anyOf", "oneOf", "allOf"):
        members = node.get(combiner)
        for member in members if isinstance(members, list) else ():
            yield from _expanded(schema, member, depth + 1)


def _nodes_at(schema: Json, path: Path) -> list[Json]:
    nodes = list(_expanded(schema, schema))
    for part in path:
        below: list[Any] = []
        for node in nodes:
            if isinstance(part, int):
                below.append(node.get("items"))
            else:
                properties = node.get("properties")
                named = properties.get(part) if isinstance(properties, dict) else None
                below.append(named if named is not None else node.get("additionalProperties"))
        nodes = [each for node in below for each in _expanded(schema, node)]
    return nodes


def _values_at(schema: Json, path: Path) -> list[Any]:
    """The values listed for the place; none if something there is not a list of values."""
    return _listed(_nodes_at(schema, path))


def _listed(nodes: Sequence[Json]) -> list[Any]:
    values: list[Any] = []
    for node in nodes:
        if isinstance(node.get("enum"), list):
            values += node["enum"]
        elif "const" in node:
            values.append(node["const"])
        elif node.get("type") not in (None, "null"):
            return []
    return values


def _names_listed_at(schema: Json, path: Path) -> list[Any]:
    """The values that the names of an object's entries may have; none if they are not listed."""
    named = [node["propertyNames"] for node in _nodes_at(schema, path) if "propertyNames" in node]
    return _listed([each for node in named for each in _expanded(schema, node)])


def _names_at(schema: Json, path: Path) -> list[str]:
    names: dict[str, None] = {}
    for node in _nodes_at(schema, path):
        if isinstance(node.get("properties"), dict):
            names |= dict.fromkeys(node["properties"])
    return list(names)
