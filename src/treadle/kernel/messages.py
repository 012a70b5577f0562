"""What is said in a run: system, user, assistant and tool messages, and the parts they are made of.

Plain frozen data with a JSON form of its own (tagged by `role` and `type`), so that a history can be journaled,
compared and sent to any provider. Nothing here knows a provider's format: `treadle.models` translates.
"""

from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, ClassVar, Literal, final

from msgspec import Struct
from msgspec.structs import astuple, replace

from treadle.kernel.errors import Named

Json = dict[str, Any]


@final
class Text(Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """A piece of text."""

    text: str


@final
class Image(Struct, metaclass=Named, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="image"):
    """An image, by its bytes or by its address; exactly one of `data` and `url` is set."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        _check_media("an Image", self.data, self.url, self.media_type)


@final
class File(Struct, metaclass=Named, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="file"):
    """A file (a PDF, a table), by its bytes or by its address; exactly one of `data` and `url` is set."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "application/pdf"
    name: str = "file"

    def __post_init__(self) -> None:
        _check_media("a File", self.data, self.url, self.media_type, self.name)


def _check_media(what: str, data: object, url: object, *words: object) -> None:
    if (data is None) == (url is None):
        raise ValueError(f"{what} takes exactly one of data= (bytes) and url=")
    if not (data is None or isinstance(data, bytes)):
        raise ValueError(f"{what} takes data= as bytes, as they are, not in base64; it was given {type(data).__name__}")
    if not all(isinstance(one, str) for one in (url or "", *words)):
        raise ValueError(f"{what} takes its address, media type and name as texts")


@final
class Thinking(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="thinking"):
    """What the model thought before it spoke.

    `signature`, `data` (redacted or encrypted thinking) and `id` are the provider's and go back to it unchanged.
    """

    text: str = ""
    signature: str | None = None
    data: str | None = None
    id: str | None = None


@final
class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="tool_call"):
    """What the model asked for.

    `arguments` is the JSON text exactly as the model wrote it, which may be malformed; empty means no arguments.
    `item_id` is a second name that some providers give the call and want back.
    """

    id: str
    name: str
    arguments: str = ""
    item_id: str | None = None


@final
class Opaque(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="opaque"):
    """A part that only `provider` understands (its own server-side tools, say), kept whole and sent back to it.

    `shown` is what people see or hear of it, such as "image", and so an answer without a text."""

    provider: str
    value: Json
    shown: str = ""


Content = Text | Image | File
AssistantPart = Text | Thinking | ToolCall | Opaque


@final
class SystemMessage(Struct, frozen=True, gc=False, tag_field="role", tag="system"):
    """The instructions that a run's messages begin with."""

    role: ClassVar[Literal["system"]] = "system"
    content: str

    @property
    def text(self) -> str:
        return self.content


@final
class UserMessage(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="role", tag="user"):
    """What a person said, or what treadle says in the person's place (a nudge, a summary).

    `left_out` is how many earlier messages it stands for, if it is the notice of a context policy, and `summary`
    whether it says what they said. `skill` is the skill whose instructions stand in it, if a person asked for one by
    its name. No model is sent these three.
    """

    role: ClassVar[Literal["user"]] = "user"
    content: str | tuple[Content, ...]
    left_out: int = 0
    summary: bool = False
    skill: str = ""

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def says_something(self) -> bool:
        """Whether there is more in it than blank text; providers refuse a message that says nothing."""
        return _says_something((Text(self.content),) if isinstance(self.content, str) else self.content)


@final
class AssistantMessage(Struct, frozen=True, gc=False, tag_field="role", tag="assistant"):
    """What the model said: text, thinking and tool calls, in the order it said them."""

    role: ClassVar[Literal["assistant"]] = "assistant"
    content: tuple[AssistantPart, ...] = ()

    @property
    def text(self) -> str:
        """The text parts joined; empty if there are none."""
        content = self.content
        if len(content) == 1:
            return content[0].text if type(content[0]) is Text else ""
        return "".join([part.text for part in content if type(part) is Text])

    @property
    def says_something(self) -> bool:
        """Whether there is more in it than blank text; providers refuse a message that says nothing."""
        return _says_something(self.content)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        if len(content := self.content) == 1:
            return (content[0],) if type(content[0]) is ToolCall else ()
        return tuple([part for part in content if type(part) is ToolCall])

    @property
    def shown(self) -> list[str]:
        """What people see or hear of its parts; see `Opaque.shown`."""
        return [part.shown for part in self.content if type(part) is Opaque and part.shown]


@final
class ToolMessage(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="role", tag="tool"):
    """The one result of the tool call `call_id`, as the model is shown it.

    `whole` is what stood here before a context policy put something shorter in its place; no model is sent it.
    `edited` is the JSON text of the arguments that a person put in place of the model's, as `content` begins by saying.
    `below` is whether a run below, which worked on the call, says so, and no tool.
    """

    role: ClassVar[Literal["tool"]] = "tool"
    call_id: str
    name: str
    content: str | tuple[Content, ...]
    is_error: bool = False
    whole: str | tuple[Content, ...] | None = None
    edited: str | None = None
    below: bool = False

    @property
    def text(self) -> str:
        return text_of(self.content)


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def _says_something(parts: Sequence[Content | AssistantPart]) -> bool:
    return any([type(part) is not Text or not (str(part.text) or " ").isspace() for part in parts])


def text_of(content: str | tuple[Content, ...]) -> str:
    """The text in a message's content, with images and files left out."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, Text))


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one model call or of many added up.

    `input_tokens` counts everything that was sent; `cache_read_tokens` and `cache_write_tokens` are the shares of it
    that were read from and written to the provider's cache. `output_tokens` counts everything that came back;
    `reasoning_tokens` is the share of it that was thinking. `estimated` is true where a provider did not report all.
    `cache_write_hour_tokens` is the share of `cache_write_tokens` that is kept for an hour. `web_searches` counts the
    searches that the provider made itself and charges for. `service` is its word for how it served the call, where that
    changes the price ("flex", "priority", "batch"); empty for the usual way, and for several calls that differ in it.
    `audio_tokens` is the share of `input_tokens` that was sound and not read from a cache, `image_tokens` the share of
    `output_tokens` that was drawn, where a provider tells them apart.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    cache_write_hour_tokens: int = 0
    web_searches: int = 0
    service: str = ""
    audio_tokens: int = 0
    image_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        added = Usage(*map(add, astuple(self), astuple(other)))
        return replace(added, estimated=self.estimated or other.estimated, service=self._service_with(other))

    def __sub__(self, other: "Usage") -> "Usage":
        return replace(self, **{name: getattr(self, name) - getattr(other, name) for name in COUNTS})

    def _service_with(self, other: "Usage") -> str:
        if not self.total_tokens:
            return other.service
        return self.service if self.service == other.service or not other.total_tokens else ""


COUNTS = tuple(name for name in Usage.__struct_fields__ if name not in ("estimated", "service"))
"""What of a `Usage` is counted."""


class ToolSpec(Struct, frozen=True, gc=False):
    """What a model is told of a tool: its name, what it is for, and the JSON Schema of its input.

    `output_schema` is the JSON Schema of what it returns, where that is known, and `changes` whether a call changes
    something, where the tool says so; providers have no place for them, the offline planner reads them.
    """

    name: str
    description: str
    input_schema: Json
    output_schema: Json | None = None
    changes: bool | None = None


class ListedTool(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that a server listed, as the run has it: `name` is what the model calls, `remote` what the server does.

    One of no server (`server` is empty) is of whoever began the run, who carries its calls out.

    `says_effect` is whether its `effect` was said by somebody who is believed, `digest` that of all that the server
    says of the tool, and `changed` how that differs from what it first said in this run (empty if it does not): such a
    tool is only called after a person has looked at it.
    """

    name: str
    server: str
    remote: str
    description: str
    input_schema: Json
    output_schema: Json | None = None
    effect: Literal["read", "idempotent", "write"] = "write"
    says_effect: bool = False
    digest: str = ""
    changed: str = ""


FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "unknown"]


class ModelSettings(Struct, metaclass=Named, frozen=True, gc=False, omit_defaults=True):
    """How a model is to generate. What is None is left to the provider.

    Attributes:
        max_tokens: the most tokens that one reply may have, thinking included.
        temperature: randomness, from 0; the provider's range.
        top_p: nucleus sampling share, 0 to 1.
        stop: texts at which the reply ends.
        seed: for repeatable sampling, where the provider has it.
        thinking: how hard to think before replying: an effort by name, or a budget in tokens, 0 for none.
        parallel_tool_calls: whether one reply may hold several tool calls.
        extra: further fields for the provider's request body, sent as they are.
    """

    _others_words: ClassVar[Mapping[str, str]] = {
        "temp": "temperature", "output_tokens": "max_tokens", "completion_tokens": "max_tokens",
        "reasoning": "thinking", "reasoning_effort": "thinking", "thinking_budget": "thinking",
        "stop_sequences": "stop", "extra_body": "extra", "parallel_calls": "parallel_tool_calls",
    }  # fmt: skip

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    thinking: Literal["none", "low", "medium", "high"] | int | None = None
    parallel_tool_calls: bool | None = None
    extra: Json | None = None
