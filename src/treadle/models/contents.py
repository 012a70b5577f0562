"""Contents: what people, tools and models said, as the blocks of those dialects that are made of blocks.

Pure. Neighbours: `anthropic`, `bedrock_blocks`, `google`, which say what each block is; `treadle.models.media`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import assert_never

from msgspec import Raw

from treadle.kernel.messages import Content, File, Image, Text, ToolCall
from treadle.models.checked import is_object
from treadle.models.codec import json_bytes


def blocks_of(
    content: str | tuple[Content, ...],
    of_text: Callable[[str], object],
    of_image: Callable[[Image], object],
    of_file: Callable[[File], object],
) -> list[object]:
    """The blocks of `content`, each made by what its kind is given to; a text that says nothing is left out.

    Args:
        content: what a person or a tool said.
        of_text: makes the block of a text.
        of_image: of an image.
        of_file: of a file.
    """
    if isinstance(content, str):
        return [of_text(content)] if content.strip() else []
    blocks: list[object] = []
    for part in content:
        match part:
            case Text(text):
                if text.strip():
                    blocks.append(of_text(text))
            case Image():
                blocks.append(of_image(part))
            case File():
                blocks.append(of_file(part))
            case _:
                assert_never(part)
    return blocks


def arguments_of(call: ToolCall) -> object:
    """The arguments of a call as the model wrote them; in an object of their own where they are no object."""
    text = call.arguments.strip()
    if not text:
        return {}
    return Raw(text) if is_object(text) else {"INVALID_JSON": call.arguments}


def arguments_as_text(call: ToolCall) -> str:
    """The arguments of a call as the JSON text of an object, for servers that read it back and refuse anything else."""
    text = call.arguments or "{}"
    return text if is_object(text) else json_bytes({"malformed_arguments": text}).decode()


def arguments_in(value: object) -> str:
    """The JSON text of the arguments of a call that came as an object.

    A number that no float holds came as infinity, which would be written as null, and be another argument: what is
    written in its place is no JSON, which is for whoever reads the arguments to refuse.
    """
    text = json_bytes(value).decode()
    try:
        if "null" in text:
            json.dumps(value, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(value, default=str)
    return text


def joined_base64(pieces: list[str]) -> str:
    """The base64 of bytes that came in pieces, each in base64 of its own."""
    if any(piece.endswith("=") for piece in pieces[:-1]):
        return b64encode(b"".join(map(b64decode, pieces))).decode()
    return "".join(pieces)
