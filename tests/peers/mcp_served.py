"""The tools that the conformance suite of MCP calls, served by treadle: `treadle mcp --tools mcp_served.py:tools`."""

import asyncio
import base64

from treadle import File, Image, Text, Tool, ToolContext, external_tool, tool

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@tool(effect="read")
def test_simple_text() -> str:
    """Says a text."""
    return "This is a simple text response for testing."


@tool(effect="read")
def test_image_content() -> Image:
    """Shows an image."""
    return Image(PNG)


@tool(effect="read")
def test_audio_content() -> File:
    """Plays a sound."""
    return File(b"RIFF", None, "audio/wav", "sound.wav")


@tool(effect="read")
def test_embedded_resource() -> File:
    """Gives a file."""
    return File(b"This is an embedded resource content.", None, "text/plain", "embedded.txt")


@tool(effect="read")
def test_multiple_content_types() -> list:
    """Gives a text, an image and a file."""
    return [Text("Multiple content types test:"), Image(PNG), File(b'{"test":1}', None, "application/json", "a.json")]


@tool(effect="read")
def test_error_handling() -> str:
    """Fails."""
    raise ValueError("This tool intentionally returns an error for testing")


@tool(effect="read")
async def test_tool_with_progress(context: ToolContext) -> str:
    """Tells how far it has come."""
    for done in (0, 50, 100):
        context.report({"progress": done, "total": 100})
        await asyncio.sleep(0.05)
    return "done"


def anything(**arguments: object) -> str:
    return str(arguments)


address = {
    "$anchor": "address",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
json_schema_2020_12_tool = Tool.from_schema(
    "json_schema_2020_12_tool",
    "Tool with JSON Schema 2020-12 features",
    {
        "$schema": DRAFT,
        "type": "object",
        "$defs": {"address": address},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
    anything,
    effect="read",
)
test_elicitation = external_tool(
    "test_elicitation",
    "Asks the person.",
    {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    wait=True,
)

tools = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    json_schema_2020_12_tool,
    test_elicitation,
]
