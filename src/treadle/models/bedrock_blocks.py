"""Bedrock's blocks: what the messages of a run become in a request of Converse, turn by turn.

Pure. The format is that of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html. Its
rules shape this file: turns alternate and the first is the user's, so that none may be left out for having nothing to
say; results of tools come first in theirs; a blank text is refused; the documents of a request have names of their own
that differ, and never come without a text. Neighbour: `treadle.models.bedrock`, which writes the rest of a request.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeGuard, assert_never
from urllib.parse import urlsplit

from msgspec import Raw, Struct

from treadle.context.shown import told_of
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
    Image,
    Json,
    Message,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.models.bedrock_makers import Maker
from treadle.models.checked import is_object
from treadle.models.contents import arguments_of, blocks_of
from treadle.models.errors import BadRequest
from treadle.models.identifiers import identifier
from treadle.models.media import DATA_URL
from treadle.models.turns import Turn

LONGEST_NAME: Final = 64
CALL_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
TEXTUAL: Final = re.compile(r"text/|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|sql|x-ndjson|x-sh)\b")
NOTHING: Final = "(no content)"
"""Stands for a turn or a result that says nothing, which may not be left out."""
DOCUMENT: Final = b'{"document":{"name":"'
"""How a document begins in the bytes of a request."""

IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
VIDEOS: Final = {
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
SOUNDS: Final = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/opus": "opus",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "mp4",
    "audio/x-m4a": "m4a",
    "audio/webm": "webm",
}


class TextBlock(Struct, gc=False):
    """A text, of either side."""

    text: str


class Call(Struct, gc=False, rename="camel"):
    """A call of a tool."""

    tool_use_id: str
    name: str
    input: object


class CallBlock(Struct, gc=False, rename="camel"):
    """The block of a call."""

    tool_use: Call


class Result(Struct, gc=False, omit_defaults=True, rename="camel"):
    """The result of a call."""

    tool_use_id: str
    content: Sequence[object]
    status: Literal["success", "error"] = "success"


class ResultBlock(Struct, gc=False, rename="camel"):
    """The block of a result."""

    tool_result: Result


class Blocks:
    """What messages become for the models of one maker.

    Args:
        provider: whose `Opaque` parts are sent.
        maker: who made the model.
    """

    def __init__(self, provider: str, maker: Maker) -> None:
        self._provider = provider
        self._maker = maker
        self._tag = reasoning_tag(provider, maker)

    def turns(self, group: Sequence[Message], first: bool, documents: Callable[[], int]) -> list[Turn]:
        """The one turn that a group of messages makes, or none where nothing was said.

        Args:
            group: the messages of one side.
            first: whether nothing comes before it.
            documents: counts the documents before it.
        """
        blocks: list[object] = []
        results = 0
        role: Literal["user", "assistant"] | None = None
        for message in group:
            if type(message) is AssistantMessage:
                role = "assistant"
                self._say(message, blocks)
            elif type(message) is ToolMessage:
                role = "user"
                blocks.insert(results, self._result(message, blocks))
                results += 1
            elif type(message) is UserMessage:
                role = "user"
                blocks += user_blocks(message.content)
            elif type(message) is not SystemMessage:
                assert_never(message)
        while blocks and role == "assistant" and type(blocks[-1]) is dict and "reasoningContent" in blocks[-1]:
            blocks.pop()
        if role is None:
            return []
        if role == "user":
            _name_documents(blocks, documents)
        turn = Turn(role, blocks or [TextBlock(NOTHING)])
        return [Turn("user", [TextBlock(NOTHING)]), turn] if first and role == "assistant" else [turn]

    def _say(self, message: AssistantMessage, blocks: list[object]) -> None:
        """Puts what `message` says at the end of `blocks`."""
        for part in message.content:
            if type(part) is ToolCall:
                blocks.append(_call(part))
            elif type(part) is Text:
                if part.text.strip():
                    blocks.append(TextBlock(part.text))
            elif type(part) is Thinking:
                # Reasoning is for the maker whose it is; without a signature it is refused.
                if part.id == self._tag and (part.data is not None or part.signature):
                    blocks.append({"reasoningContent": _reasoning(part)})
            elif type(part) is Opaque:
                # An image may stand in a turn of the user's alone.
                if part.provider in (self._provider, self._tag) and "image" not in part.value:
                    _put_own(part.value, blocks)
                elif told := told_of(part, message):
                    blocks.append(TextBlock(told))
            else:
                assert_never(part)

    def _result(self, message: ToolMessage, blocks: list[object]) -> ResultBlock:
        """The block of a result; what cannot stand in one goes to the end of `blocks`."""
        content = user_blocks(message.content)
        sounds = [block for block in content if type(block) is dict and "audio" in block]
        if sounds:
            blocks += [TextBlock(f"From the result of {message.name}:"), *sounds]
            content = [block for block in content if block not in sounds]
        if self._maker.json_results:
            content = [_json_result(block) if type(block) is TextBlock else block for block in content]
        # Claude refuses an error that is more than text.
        plain = all([type(block) is not dict or "json" in block for block in content])
        status: Literal["success", "error"] = "error" if message.is_error and plain else "success"
        return ResultBlock(Result(call_id(message.call_id), content or [TextBlock(NOTHING)], status))


def reasoning_tag(provider: str, maker: Maker) -> str | None:
    """What is kept with reasoning, and with blocks of its own, of whose they are: another maker's model refuses them.

    None for Claude's, whose reasoning other hosts of Claude take too.
    """
    return None if maker.name in ("", "anthropic") else f"{provider}:{maker.name}"


def call_id(text: str) -> str:
    """The id of a call as Bedrock takes it: its own ids as they are."""
    return text if CALL_ID.fullmatch(text) else identifier(text, 64)


def _reasoning(part: Thinking) -> Json:
    if part.data is not None:
        return {"redactedContent": b64encode(part.data.encode()).decode()}
    return {"reasoningText": {"text": part.text, "signature": part.signature}}


def _put_own(value: Json, blocks: list[object]) -> None:
    """Puts a block back that came from here; its text stands before it, where everybody can read it, unless edited."""
    cited = value.get("citationsContent")
    if isinstance(cited, dict):
        text = "".join([one.get("text") or "" for one in cited.get("content") or ()])
        if blocks[-1:] == [TextBlock(text)]:
            blocks.pop()
        elif text.strip():
            return
    blocks.append(value)


def _call(call: ToolCall) -> CallBlock:
    return CallBlock(Call(call_id(call.id), identifier(call.name, LONGEST_NAME), arguments_of(call)))


def _json_result(block: TextBlock) -> Json:
    return {"json": Raw(block.text) if is_object(block.text) else {"result": block.text}}


def user_blocks(content: str | tuple[Content, ...]) -> list[object]:
    """The blocks of what a person or a tool said, but for the names of documents."""
    return blocks_of(content, TextBlock, _image, _file)


def _image(image: Image) -> Json:
    return _media("image", IMAGES, image.media_type, image.data, image.url)


def _file(file: File) -> Json:
    kind = file.media_type.partition("/")[0]
    match kind:
        case "image":
            return _media("image", IMAGES, file.media_type, file.data, file.url)
        case "video":
            return _media("video", VIDEOS, file.media_type, file.data, file.url)
        case "audio":
            return _media("audio", SOUNDS, file.media_type, file.data, file.url)
    textual = {file.media_type: "txt"} if TEXTUAL.match(file.media_type) else {}
    made = _media("document", {**textual, **DOCUMENTS}, file.media_type, file.data, file.url)
    return {"document": {"name": file.name, **made["document"]}}


def _media(kind: str, formats: dict[str, str], media_type: str, data: bytes | None, url: str | None) -> Json:
    """A block of `kind` with its bytes, or the place in S3 where they are."""
    inline = DATA_URL.fullmatch(url or "")
    form = formats.get((inline[1] if inline else media_type).lower())
    if form is None:
        known = ", ".join(sorted(formats))
        raise BadRequest(f"Bedrock takes no {kind} of type {media_type}; it takes {known}")
    if data is not None:
        source: Json = {"bytes": b64encode(data).decode()}
    elif inline:
        source = {"bytes": inline[2]}
    elif urlsplit(url or "").scheme == "s3":
        source = {"s3Location": {"uri": url}}
    else:
        raise BadRequest(f"Bedrock takes no {kind} by its address, but in S3 (s3://…); read {url} and give its bytes")
    return {kind: {"format": form, "source": source}}


def _name_documents(blocks: list[object], before: Callable[[], int]) -> None:
    """Gives each document a name that no other has, and a text beside it."""
    inner = [(block, block.tool_result.content) for block in blocks if type(block) is ResultBlock]
    found = [one for one in [*blocks, *(one for _, content in inner for one in content)] if _is_document(one)]
    if not found:
        return
    for number, block in enumerate(found, before() + 1):
        document = block["document"]
        name = re.sub(r"[^a-zA-Z0-9\s()\[\]-]|\s+", " ", document["name"])
        document["name"] = f"{' '.join(name.split())[:180] or 'document'} ({number})"
    if any(map(_is_document, blocks)) and not any([type(block) is TextBlock for block in blocks]):
        blocks.append(TextBlock("(see the document)"))


def _is_document(block: object) -> TypeGuard[dict[str, Any]]:
    return type(block) is dict and "document" in block
