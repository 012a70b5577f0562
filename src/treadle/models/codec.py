"""Codec: the port that every wire dialect fills in, and the history that a codec keeps encoded.

A dialect is pure: it turns a `ModelRequest` into a JSON body and what came back into `ModelEvent`s, and touches no
network, clock or file. `treadle.models.http_model` joins a codec to the transport; `treadle.models.failures` has the
part of reading errors that the dialects share. Neighbours: `openai_chat`, `openai_responses`, `anthropic`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import is_
from threading import Lock
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from treadle.kernel.messages import Json, Message
from treadle.models.errors import ModelError
from treadle.models.port import ModelEvent, ModelReply, ModelRequest

# What a decoder is fed for a `[DONE]` line, the server's word that the stream is whole; other dialects look past it.
DONE: Final[Json] = {"type": "[DONE]"}


class Decoder(Protocol):
    """Reads one streamed reply."""

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError` for an error inside the stream."""

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ProtocolError` if it ended too early to be trusted."""


class Codec(Protocol):
    """One wire dialect."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL, such as "/chat/completions"."""

    @property
    def provider(self) -> str:
        """The provider's name, for errors, `Opaque` parts and the model's name, such as "openai"."""

    def encode(self, request: ModelRequest, model: str, stream: bool) -> Json:
        """The request body. Values may be `msgspec.Raw` where they were encoded before; `body_bytes` writes it out."""

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the `ModelReply` last. Raises `ModelError` if it holds an error."""

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""


def body_bytes(body: Json) -> bytes:
    """The bytes of a body that `Codec.encode` made, the same bytes for the same body."""
    return _json(body)


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Half of a surrogate pair, out of a file's name or a tool's output: no provider takes it.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class History:
    """Messages as a provider wants them, kept encoded from one step to the next.

    Each step's messages usually begin with the step before's; those are recognised by being the same objects, and only
    what follows is encoded. Messages that a provider merges into one, or that must be looked at together, form a group:
    `joins(previous, message)` says whether `message` belongs to the group of `previous`, and `encode_group` gives the
    provider's messages for one group. The last group may still grow, so it alone is encoded again in the next step.

    What is kept belongs to a key (the run and the model), holds the messages strongly (so that an identity cannot be
    reused), and is bounded: once `limit` bytes are kept, the keys used longest ago are forgotten, but never the last.
    It may be used from several threads: a trail is taken out while it is worked on.

    Args:
        encode_group: the provider's messages for one group.
        joins: whether a message belongs to the group of the one before it; by default never.
        limit: the most bytes of JSON to keep.
    """

    def __init__(
        self,
        encode_group: Callable[[Sequence[Message]], Iterable[Json]],
        joins: Callable[[Message, Message], bool] = lambda previous, message: False,
        limit: int = 32_000_000,
    ) -> None:
        self._encode_group = encode_group
        self._joins = joins
        self._limit = limit
        self._trails: dict[Any, _Trail] = {}
        self._size = 0
        self._lock = Lock()

    def encode(self, key: Any, messages: Iterable[Message]) -> list[Raw]:
        """The provider's messages for `messages`, each the bytes of its JSON."""
        trail = self._take(key)
        items = list(messages)
        trail.cut(_common(trail.messages, items))
        kept = len(trail.messages)
        if 0 < kept < len(items) and self._joins(items[kept - 1], items[kept]):
            # What ended the last group has been taken out of the history, and the group goes on.
            trail.cut(kept - 1)
        group: list[Message] = []
        for message in islice(items, len(trail.messages), None):
            if group and not self._joins(group[-1], message):
                trail.add(group, self._raw(group))
                group = []
            group.append(message)
        last = self._raw(group) if group else []
        self._keep(key, trail)
        return trail.fragments + last

    def _raw(self, group: Sequence[Message]) -> list[Raw]:
        return [Raw(_json(item)) for item in self._encode_group(group)]

    def _take(self, key: Any) -> "_Trail":
        with self._lock:
            trail = self._trails.pop(key, None) or _Trail()
            self._size -= trail.size
        return trail

    def _keep(self, key: Any, trail: "_Trail") -> None:
        with self._lock:
            replaced = self._trails.pop(key, None)
            self._trails[key] = trail
            self._size += trail.size - (replaced.size if replaced else 0)
            while self._size > self._limit and len(self._trails) > 1:
                self._size -= self._trails.pop(next(iter(self._trails))).size


class _Trail:
    """The closed groups of one run: their messages, and the fragments of JSON that they became."""

    __slots__ = ("ends", "fragments", "messages", "size")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.fragments: list[Raw] = []
        # After each group: how many messages, how many fragments and how many bytes there are.
        self.ends: list[tuple[int, int, int]] = []
        self.size = 0

    def add(self, group: Sequence[Message], fragments: Sequence[Raw]) -> None:
        self.messages.extend(group)
        self.fragments.extend(fragments)
        self.size += sum(len(bytes(fragment)) for fragment in fragments)
        self.ends.append((len(self.messages), len(self.fragments), self.size))

    def cut(self, length: int) -> None:
        """Forgets the groups that reach beyond the first `length` messages."""
        if length == len(self.messages):
            return
        while self.ends and self.ends[-1][0] > length:
            self.ends.pop()
        messages, fragments, self.size = self.ends[-1] if self.ends else (0, 0, 0)
        del self.messages[messages:]
        del self.fragments[fragments:]


def _common(kept: Sequence[Message], given: Sequence[Message]) -> int:
    """How many messages at the start of both are the same objects."""
    if len(kept) <= len(given) and all(map(is_, kept, given)):
        return len(kept)
    return next((i for i, same in enumerate(map(is_, kept, given)) if not same), min(len(kept), len(given)))
