"""Codec: the port that every wire dialect fills in, and how its requests become bytes.

A dialect is pure: it turns a `ModelRequest` into the bytes of a JSON body and what came back into `ModelEvent`s, and
touches no network, clock or file. A body is its few fields and, last, the long list of the history, whose bytes are
kept from step to step (`treadle.models.history`) and only copied. `treadle.models.http_model` joins a codec to the
transport; `treadle.models.failures` has the part of reading errors that the dialects share. Neighbours: `openai_chat`,
`openai_responses`, `anthropic`, `google`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, Json, Message, ModelSettings, UserMessage
from treadle.models.errors import ModelError
from treadle.models.halves import without_halves
from treadle.models.history import History
from treadle.models.port import ModelEvent, ModelReply, ModelRequest, UsageReported
from treadle.models.profile import ModelProfile

# What a decoder is fed for a `[DONE]` line, the server's word that the stream is whole; other dialects look past it.
DONE: Final[Json] = {"type": "[DONE]"}
# What a user's turn says that only stands there because the provider wants one first.
OPENING: Final = "(no content)"
# What it says after a reply that another provider has paused, and that this one is to go on with.
GOING_ON: Final = UserMessage("Go on.")


def answerable(request: ModelRequest) -> ModelRequest:
    """`request` with a user's word last, for a provider that takes no other: only Anthropic goes on with a reply."""
    if not request.messages or not isinstance(request.messages[-1], AssistantMessage):
        return request
    return replace(request, messages=(*request.messages, GOING_ON))


class Decoder(Protocol):
    """Reads one streamed reply."""

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet."""

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError` for an error inside the stream.

        A dialect's own may raise what reading a field of another shape raises: `treadle.models.guarded` has the guard.
        What is fed after an error is heard for what it says of the usage.
        """

    def whole(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the `ModelReply` last. Raises `ModelError` if it holds an error."""

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ProtocolError` if it ended too early to be trusted."""


class Codec(Protocol):
    """One wire dialect."""

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL, such as "/chat/completions"."""

    @property
    def provider(self) -> str:
        """The provider's name, for errors, `Opaque` parts and the model's name, such as "openai"."""

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body: JSON, the same bytes for the same request, the history last."""

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do in this dialect at this host; its context window is in the table of known models."""

    def longest(self, settings: ModelSettings, model: str) -> int | None:
        """The most tokens that a reply of `model` may have under `settings`; None if only the provider knows."""

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`, thinking included, and still says something."""

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The events of a whole JSON body; see `Decoder.whole`."""

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""


def json_history(
    encode_group: Callable[[Sequence[Message]], Iterable[object]],
    joins: Callable[[Message, Message], bool] = lambda previous, message: False,
    limit: int = 32_000_000,
    opening: object | None = None,
    followed: Callable[[Sequence[Message]], Sequence[Message]] = lambda group: group,
) -> History[bytearray]:
    """A history kept as JSON: the items that `encode_group` gives for each group of messages, a comma after each.

    Args:
        encode_group: the provider's messages for one group.
        joins: whether a message belongs to the group of the one before it; by default never.
        limit: the most bytes of JSON to keep.
        opening: what goes before words of the model that come first, at a provider that refuses a history which does
            not begin with the user.
        followed: what is said of a group that another follows, which the last one is not; by default all of it.
    """

    def put(group: Sequence[Message], made: bytearray) -> None:
        for item in encode_group(group):
            if not made and opening is not None and any([type(message) is AssistantMessage for message in group]):
                made += json_bytes(opening)
                made += b","
            made += json_bytes(item)
            made += b","

    return History(bytearray, put, joins, limit=limit, followed=followed)


def body_bytes(fields: Json, name: str, history: bytearray, marks: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """The bytes of a body: `fields`, and after them the list `name` with the items of `history`.

    Args:
        fields: the other fields, at least one.
        name: the field of the history.
        history: what `json_history` keeps.
        marks: bytes to put in, each with the index in `history` before which it stands, in rising order.

    Raises:
        Misuse: `fields` has a field `name`, out of `ModelSettings.extra`.
    """
    if name in fields:
        raise Misuse(f"settings.extra has a field {name!r}, which holds the run's messages; add a message instead")
    pieces: list[bytes | memoryview] = [json_bytes(fields)[:-1], b',"', name.encode(), b'":[']
    # Slices of a view copy nothing: the bytes are moved once, into the body.
    view, place = memoryview(history)[:-1], 0
    for index, mark in marks:
        pieces += [view[place:index], mark]
        place = index
    return b"".join([*pieces, view[place:], b"]}"])


def json_bytes(value: object) -> bytes:
    """`value` as the JSON that stands in a body."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(without_halves(value))


_ENCODER: Final = msgspec.json.Encoder()
