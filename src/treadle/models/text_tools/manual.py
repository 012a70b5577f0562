"""Manual: what a model is told of its tools, made from their schemas. Pure; neighbours: the formats, `model.py`."""

import json
from typing import Any, Final

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.text_tools.pieces import Format, Offer

_DEEPEST: Final = 4
_STANDS: Final[Json] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}


def manual(form: Format, offer: Offer) -> str:
    """The instructions that follow the system prompt: the tools, how to call them, and whether one must be called."""
    tools = "\n\n".join(_tool(tool) for tool in offer.tools.values())
    parts = ["You have tools.", form.how_to(offer, example(form, offer)), f"The tools are:\n\n{tools}"]
    if offer.choice == "required":
        parts.append("You must call a tool in every reply.")
    elif offer.choice not in ("auto", "none"):
        parts.append(f"You must call the tool {offer.choice} in every reply.")
    return "\n\n".join(parts)


def example(form: Format, offer: Offer, tool: str = "") -> str:
    """A right call of `tool`, or else of the one that must be called, or else of the first."""
    name = next((name for name in (tool, offer.choice, *offer.tools) if name in offer.tools), "tool")
    schema = offer.schema(name)
    properties = schema.get("properties", {})
    names = schema.get("required") or list(properties)[:1]
    arguments = {each: _value(properties.get(each, {}), schema) for each in names}
    return form.call(name, json.dumps(arguments, ensure_ascii=False))


def _value(node: Any, schema: Json) -> Any:
    node = _target(node, schema)
    for keyword in ("examples", "enum"):
        if isinstance(node.get(keyword), list) and node[keyword]:
            return node[keyword][0]
    for keyword in ("const", "default"):
        if keyword in node:
            return node[keyword]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(node.get(keyword), list) and node[keyword]:
            return _value(node[keyword][0], schema)
    kind = node.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return _STANDS.get(kind, "...") if isinstance(kind, str) else "..."


def _tool(tool: ToolSpec) -> str:
    schema = tool.input_schema
    required = schema.get("required", [])
    lines = [f"{tool.name}: {tool.description.strip()}" if tool.description.strip() else tool.name]
    properties = schema.get("properties", {})
    for name, node in properties.items():
        kind = _type(node, schema)
        told = node.get("description", "") if isinstance(node, dict) else ""
        extra = ", required" if name in required else _default(node)
        lines.append(f"- {name} ({kind}{extra}){f': {told}' if told else ''}")
    if not properties:
        lines.append("- takes no arguments" if schema.get("additionalProperties") is False else "- takes any arguments")
    return "\n".join(lines)


def _default(node: Any) -> str:
    if isinstance(node, dict) and "default" in node:
        return f", default {json.dumps(node['default'], ensure_ascii=False)}"
    return ", optional"


def _type(node: Any, schema: Json, depth: int = 0) -> str:
    """A parameter's type in words; as JSON Schema where words would lose something."""
    node = _target(node, schema)
    if isinstance(node.get("enum"), list):
        return f"one of {', '.join(json.dumps(value, ensure_ascii=False) for value in node['enum'])}"
    if "const" in node:
        return json.dumps(node["const"], ensure_ascii=False)
    members = node.get("anyOf") or node.get("oneOf")
    if isinstance(members, list) and depth < 4:
        return " or ".join(dict.fromkeys(_type(member, schema, depth + 1) for member in members))
    kind = node.get("type", "any")
    if kind == "array" and isinstance(node.get("items"), dict) and depth < 4:
        return f"array of {_type(node['items'], schema, depth + 1)}"
    if kind == "object" and isinstance(node.get("properties"), dict) and depth < 4:
        inner = [
            f"{name}: {_type(part, schema, depth + 1)}{'' if name in node.get('required', ()) else ', optional'}"
            for name, part in node["properties"].items()
        ]
        return f"object {{{'; '.join(inner)}}}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def keys_of(schema: Json) -> frozenset[str]:
    """The keys that an object may have which fits `schema`, or which stands in a list that does."""
    found: set[str] = set()
    left: list[tuple[Any, int]] = [(schema, 0)]
    while left:
        node, depth = left.pop()
        node = _target(node, schema)
        properties = node.get("properties")
        found |= properties.keys() if isinstance(properties, dict) else set()
        for keyword in ("anyOf", "oneOf", "allOf", "items") if depth < _DEEPEST else ():
            inner = node.get(keyword)
            left += [(one, depth + 1) for one in (inner if isinstance(inner, list) else [inner])]
    return frozenset(found)


def _target(node: Any, schema: Json) -> Json:
    """What a node of a schema says, a reference followed."""
    for _ in range(8):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = schema
        for part in reference[2:].split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        node = target
    return node if isinstance(node, dict) else {}
