"""Media: what the type and the address of a file tell, alike for the dialects that send files by their bytes.

Pure. Neighbours: the dialects.
"""

import re
from base64 import b64encode
from typing import Final

from treadle.kernel.messages import Json
from treadle.models.counts import fields_in, name_in

TEXTUAL: Final = re.compile(r"text/|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|sql|csv|x-ndjson|x-sh)\b")
"""The media types of files that are text, and can be sent as such."""

DATA_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
"""An address that holds the file: its media type, and its bytes in base64 (RFC 2397)."""


def data_url(data: bytes | None, media_type: str) -> str:
    """The address that holds the bytes."""
    return f"data:{media_type};base64,{b64encode(data or b'').decode()}"


def shown_in(part: Json) -> str:
    """What the bytes in a part of Gemini's are for people, in a word; empty if it has none, or only thinks of them."""
    media = fields_in(part, "inlineData") or fields_in(part, "inline_data")
    if not media or part.get("thought"):
        return ""
    kind = (name_in(media, "mimeType") or name_in(media, "mime_type") or "image").partition("/")[0]
    return {"audio": "sound", "image": "image", "video": "video"}.get(kind, "file")
