"""Gemini: requests of Google's generateContent written, errors named.

Pure. The format is that of https://ai.google.dev/api/generate-content, the same at Vertex. Three of its rules shape
this file: turns alternate, so that consecutive user and tool messages are one user turn with the tool results first;
the signature that a part carried goes back in just that part; a text that says nothing is refused. What comes back is
read by `treadle.models.google_stream`. Neighbours: `treadle.models.codec` (the port, and the history kept encoded),
`treadle.models.google_thinking`, `treadle.models.google_schema`.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from mimetypes import guess_type
from typing import Any, Final, assert_never
from urllib.parse import quote, urlsplit

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from treadle.context.shown import told_of
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
    Json,
    Message,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models.codec import OPENING, Decoder, body_bytes, json_history
from treadle.models.contents import arguments_of, blocks_of
from treadle.models.counts import fields_in
from treadle.models.errors import BadRequest, ModelError
from treadle.models.extra import add_extra, longest
from treadle.models.failures import codes_of, error_for, error_for_page, text_of_error, unnamed_error
from treadle.models.google_names import begun, camelled
from treadle.models.google_schema import google_schema
from treadle.models.google_stream import CITED, MADE, SIGNS, THOUGHT, GoogleDecoder
from treadle.models.google_thinking import generation, held_thinking, thinking_config
from treadle.models.guarded import Guarded
from treadle.models.identifiers import identifier
from treadle.models.media import DATA_URL, TEXTUAL
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import ModelProfile
from treadle.models.turns import same_turn

NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
FILMS: Final = re.compile(r"(?:^|\.)(?:youtube\.com|youtu\.be)$")
"""Whose addresses are those of films, which Gemini looks at there."""
UNSIGNED: Final = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made, which Gemini 3 and later otherwise refuse to be told of.
Source: https://ai.google.dev/gemini-api/docs/thought-signatures"""
SIGNED: Final = 3
"""The generation of Gemini from which on calls must be signed, and an answer may be of a type beside tools."""
CONFIG: Final = "generationConfig"
MOST: Final = "maxOutputTokens"


# The parts that a long history is made of are structs: a dict takes half as long again.
class Turn(Struct, gc=False):
    """What one side says, until the other speaks."""

    role: str
    parts: Sequence[object]


class TextPart(Struct, gc=False, omit_defaults=True):
    """A text, of either side, or a thought."""

    text: str
    thought: bool = False
    thoughtSignature: str | UnsetType = UNSET


class Call(Struct, gc=False, omit_defaults=True):
    """A call of a tool."""

    name: str
    args: object
    id: str | UnsetType = UNSET


class CallPart(Struct, gc=False, omit_defaults=True):
    """The part that holds a call."""

    functionCall: Call
    thoughtSignature: str | UnsetType = UNSET


class Result(Struct, gc=False, omit_defaults=True):
    """The result of a call."""

    name: str
    response: object
    id: str | UnsetType = UNSET


class ResultPart(Struct, gc=False):
    """The part that holds a result."""

    functionResponse: Result


class GoogleCodec:
    """The dialect of Google's generateContent; see `treadle.models.codec.Codec`.

    A step that takes tools away leaves them described, as the messages say that they may not be called: what Gemini
    has cached of a run begins with them.

    Args:
        provider: the provider's name, for errors and `Opaque` parts.
    """

    def __init__(self, provider: str = "google") -> None:
        self.provider = provider
        opening = Turn("user", [TextPart(OPENING)])
        self._unsigned = json_history(partial(self._turn, False), same_turn, opening=opening)
        self._signed = json_history(partial(self._turn, True), same_turn, opening=opening)

    def path(self, model: str, stream: bool) -> str:
        """Where requests go; a model of one's own has a path as its name, such as "tunedModels/x" or "endpoints/1"."""
        place = quote(model, safe="/@:")
        name = place if "/" in place else f"models/{place}"
        return f"/{name}:streamGenerateContent?alt=sse" if stream else f"/{name}:generateContent"

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body. Raises `BadRequest` for what this API has no place for."""
        settings = request.settings
        if settings.parallel_tool_calls is False:
            raise BadRequest(
                "Gemini cannot be held to one call in a reply: leave parallel_tool_calls out, or ask for it in words"
            )
        body: Json = {CONFIG: _config(request, model)}
        tools = request.tools if request.usual is None else request.usual.tools
        if tools:
            body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in tools]}]
            if request.tool_choice != "auto":
                names = [_name(spec.name) for spec in request.tools] if len(request.tools) < len(tools) else []
                body["toolConfig"] = {"functionCallingConfig": _choice(request.tool_choice, names)}
        history = self._signed if generation(model) >= SIGNED else self._unsigned
        with history.follow((request.run_id, model), request.messages) as trail:
            if system := [{"text": content} for content in trail.system if content.strip()]:
                body["systemInstruction"] = {"parts": system}
            add_extra(body, _camel(settings.extra))
            if (most := self.longest(settings, model)) is not None:
                body[CONFIG] = fields_in(body, CONFIG) | {MOST: most}
            return body_bytes(body, "contents", trail.made)

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do; before Gemini 3, none is held to a schema and given tools at once."""
        made = generation(model)
        return ModelProfile(
            output="native",
            output_beside_tools="native" if made >= SIGNED else "tool",
            tools=True,
            parallel_calls=True,
            prefix_cache=True,
            thinking=None if made == 0 else made > 2 or "gemini-2.5" in model,
        )

    def longest(self, settings: ModelSettings, model: str) -> int | None:
        """The most tokens that a reply may have under `settings`, thinking included; None if they do not say."""
        own = fields_in(_camel(settings.extra) or {}, CONFIG).get(MOST)
        given = [longest(settings), own if isinstance(own, int) and not isinstance(own, bool) else None]
        return min((most for most in given if most is not None), default=None)

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`, with room for an answer beside its thinking."""
        return held_thinking(replace(settings, max_tokens=tokens), model, tokens)

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""
        return Guarded(self.provider, GoogleDecoder(self.provider, self._stream_error))

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The events of a whole response, the reply last. Raises `ModelError` if it holds an error."""
        return self.decoder().whole(body)

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""
        if isinstance(body, str):
            return error_for_page(self.provider, status, headers, body)
        return self._error(status, headers, body.get("error") or body)

    def _stream_error(self, data: Json) -> ModelError:
        # What its code says is no status of HTTP, which was another.
        return self._error(None, {}, unnamed_error(data))

    def _error(self, status: int | None, headers: Mapping[str, str], error: Any) -> ModelError:
        codes, wait = [codes_of(error)], ""
        details = error.get("details") if isinstance(error, dict) else None
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                codes.append(str(detail.get("reason") or ""))
                wait = wait or str(detail.get("retryDelay") or "")
        if wait and "retry-after" not in headers:
            headers = {**headers, "retry-after": wait}
        return error_for(self.provider, text_of_error(error), status=status, code=" ".join(codes), headers=headers)

    def _turn(self, signed: bool, group: Sequence[Message]) -> list[Turn]:
        """The one turn that a group of messages makes, or none where nothing is left to say."""
        role, results, besides, said = "user", list[object](), list[object](), list[object]()
        for message in group:
            match message:
                case AssistantMessage():
                    role = "model"
                    self._say(message, signed, said)
                case ToolMessage():
                    results.append(_result(message))
                    besides += _beside(message)
                case UserMessage():
                    said += _parts(message.content)
                case SystemMessage():
                    # It is among the instructions.
                    pass
                case _:
                    assert_never(message)
        parts = [*results, *besides, *said]
        return [Turn(role, parts)] if parts else []

    def _say(self, message: AssistantMessage, signed: bool, said: list[object]) -> None:
        """Puts what `message` says at the end of `said`."""
        signature: str | UnsetType = UNSET
        first = True
        for part in message.content:
            match part:
                case Text(text):
                    if text:
                        said.append(TextPart(text, thoughtSignature=signature))
                case ToolCall():
                    if first and signed and signature is UNSET:
                        signature = UNSIGNED
                    first = False
                    said.append(CallPart(_call(part), signature))
                case Thinking():
                    if part.id == SIGNS and part.signature is not None:
                        signature = part.signature
                        continue
                    if part.id == THOUGHT:
                        said.append(TextPart(part.text, True, part.signature or UNSET))
                case Opaque(provider, value):
                    # What Gemini says aloud is of a kind that it does not take.
                    own = provider == self.provider and part.shown != "sound"
                    if own and not value.keys() & set(CITED):
                        said.append(value)
                    elif told := told_of(part, message):
                        said.append(TextPart(told))
                case _:
                    assert_never(part)
            signature = UNSET


def _config(request: ModelRequest, model: str) -> Json:
    settings = request.settings
    fields: Json = {
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "stopSequences": list(settings.stop) if settings.stop else None,
        "seed": settings.seed,
        "thinkingConfig": thinking_config(settings, model) or None,
    }
    if request.output_schema is not None:
        fields["responseMimeType"] = "application/json"
        fields["responseJsonSchema"] = google_schema(request.output_schema)
    return {name: value for name, value in fields.items() if value is not None}


def _tool(spec: ToolSpec) -> Json:
    schema = spec.input_schema if "type" in spec.input_schema else {"type": "object"} | spec.input_schema
    return {"name": _name(spec.name), "description": spec.description, "parametersJsonSchema": google_schema(schema)}


def _choice(choice: str, names: Sequence[str]) -> Json:
    """The choice among the tools; `names` are those that may be called, where that is not all that are described."""
    match choice:
        case "none":
            return {"mode": "NONE"}
        case "required":
            return {"mode": "ANY"} | ({"allowedFunctionNames": list(names)} if names else {})
        case _:
            return {"mode": "ANY", "allowedFunctionNames": [_name(choice)]}


def _camel(extra: Json | None) -> Json | None:
    """`extra` with the names of its fields, and of those in its objects, spelt as in the rest of the body."""
    if not extra:
        return extra
    named = {camelled(name): value for name, value in extra.items()}
    return named | {
        name: {camelled(inner): one for inner, one in named[name].items()}
        for name in (CONFIG, "toolConfig")
        if isinstance(named.get(name), dict)
    }


def _sent_id(call_id: str) -> str | UnsetType:
    """The id of a call as Gemini gave it; not one that it never saw."""
    return UNSET if not call_id or call_id.startswith(MADE) else call_id


def _name(name: str) -> str:
    """A tool's name if Gemini takes it, else one that it takes."""
    name = begun(name)
    return name if NAME.fullmatch(name) else f"_{identifier(name, 127)}"


def _call(call: ToolCall) -> Call:
    """A call, with the arguments as the model wrote them; in an object of their own where they are no object."""
    return Call(_name(call.name), arguments_of(call), _sent_id(call.id))


def _result(message: ToolMessage) -> ResultPart:
    response = {"error" if message.is_error else "output": message.text}
    return ResultPart(Result(_name(message.name), response, _sent_id(message.call_id)))


def _beside(message: ToolMessage) -> list[object]:
    """What a result holds besides text, which goes after all results."""
    if isinstance(message.content, str):
        return []
    parts = _parts(tuple(part for part in message.content if not isinstance(part, Text)))
    return [TextPart(f"From the result of {message.name}:"), *parts] if parts else []


def _parts(content: str | tuple[Content, ...]) -> list[object]:
    return blocks_of(content, TextPart, lambda one: _media(one.data, one.url, one.media_type, "image/png"), _file)


def _file(file: File) -> object:
    if file.data is not None and TEXTUAL.match(file.media_type):
        return TextPart(f"{file.name}:\n{file.data.decode('utf-8', 'replace')}")
    return _media(file.data, file.url, file.media_type, "application/pdf")


def _media(data: bytes | None, url: str | None, media_type: str, default: str) -> Json:
    """An image, a sound, a film or a document, by its bytes or its address (of the web, of the Files API, or gs://)."""
    if data is not None:
        return {"inlineData": {"mimeType": media_type, "data": b64encode(data).decode()}}
    if inline := DATA_URL.fullmatch(url or ""):
        return {"inlineData": {"mimeType": inline[1], "data": inline[2]}}
    if media_type == default:
        # Nobody said what it is; the address may.
        address = urlsplit(url or "")
        film = "video/mp4" if FILMS.search(address.netloc) else None
        media_type = film or guess_type(address.path)[0] or default
    return {"fileData": {"mimeType": media_type, "fileUri": url}}
