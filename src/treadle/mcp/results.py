"""Results: what a server gives back, as what a tool returns. All of it is untrusted, and none of it is carried out."""

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from treadle.kernel.messages import Content, File, Image, Text
from treadle.mcp.secrets import Secrets
from treadle.tools import BadTool, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult


MOST_MEDIA: Final = 100
"""Images and files of one result: more than any model takes with a request, so that the run could not go on."""


def result_of(found: "CallToolResult", secrets: Secrets) -> ToolResult:
    """What the model is shown of a result, and as `for_app` its structured content, if it has any.

    Where no text says anything the model is shown that, beside the images and files that there are.
    """
    parts: list[Content] = [part for one in found.content for part in parts_of(one, secrets)]
    media = sum(not isinstance(part, Text) for part in parts)
    if media > MOST_MEDIA:
        words = f"[{media:,} images and files were given, of which at most {MOST_MEDIA} are shown: none is]"
        parts = [*(part for part in parts if isinstance(part, Text)), Text(words)]
    data = secrets.without(found.structured_content)
    beside = [part for part in parts if not isinstance(part, Text) or part.text.strip()]
    shown: Any = parts
    if data is not None and not is_said(found):
        shown = [*beside, data] if beside else data
    elif all(isinstance(part, Text) for part in parts):
        shown = "\n".join(part.text for part in parts if isinstance(part, Text))
    return ToolResult(shown, data, found.is_error)


def is_said(found: "CallToolResult") -> bool:
    """Whether a text of a result says anything, so that its structured content need not be shown."""
    return any(one.type == "text" and one.text.strip() for one in found.content)


def require_fitting(found: "CallToolResult", schema: Any) -> None:
    """Refuses a result whose structured content is not what the server said that it would be.

    Not left to the official client, which matches the patterns of a schema with `re`: a server could hold up the whole
    process with one.

    Raises:
        ValueError: it does not fit, or what the server says of it is no schema.
    """
    import jsonschema_rs

    if schema is None or found.is_error:
        return
    if found.structured_content is None and "structured_content" not in found.model_fields_set:
        raise ValueError("it has no structured content, and the server said that it would")
    wrong = next(jsonschema_rs.validator_for(schema, offline=True).iter_errors(found.structured_content), None)
    if wrong is not None:
        raise ValueError(wrong.message)


def require_schema(tool: str, schema: Any) -> None:
    """Refuses a tool of which no result could be held against what the server says that it gives.

    Raises:
        BadTool: `schema` is none, or refers to another document.
    """
    import jsonschema_rs

    try:
        if schema is not None:
            jsonschema_rs.validator_for(schema, offline=True)
    except ValueError as error:
        (words, *_) = str(error).splitlines() or [""]
        raise BadTool(f"{tool}: the output schema is not a valid JSON Schema: {words[:300]}") from error


def parts_of(block: Any, secrets: Secrets) -> Sequence[Content]:
    """The parts of a message that a block of content is."""
    match block.type:
        case "text":
            return [Text(secrets.hidden(block.text))]
        case "image":
            return [_media(block.data, block.mime_type, "image", secrets)]
        case "audio":
            return [_media(block.data, block.mime_type, "audio", secrets)]
        case "resource_link":
            words = f": {block.description}" if block.description else ""
            return [Text(secrets.hidden(f"[resource {block.uri} ({block.name}){words}]"))]
        case "resource":
            return resource_parts(block.resource, secrets)
        case other:
            return [Text(f"[content of a kind that is not known here: {other!r:.50}]")]


def resource_parts(resource: Any, secrets: Secrets) -> Sequence[Content]:
    """The parts of a message that the contents of a resource are."""
    uri, text = str(resource.uri), getattr(resource, "text", None)
    if text is not None:
        return [Text(secrets.hidden(f"[resource {uri}]\n{text}"))]
    return [_media(resource.blob, resource.mime_type, unquote(uri.rpartition("/")[2]) or "resource", secrets)]


def _media(data: str, kind: str | None, name: str, secrets: Secrets) -> Content:
    try:
        content = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return Text(f"[{name}: what was given is no base64]")
    kind = secrets.hidden(kind or "application/octet-stream")
    return Image(content, None, kind) if kind.startswith("image/") else File(content, None, kind, secrets.hidden(name))
