"""Hidden: the keys that a model is used with, kept out of all that is told, recorded and logged.

Pure. Some servers send back what they were sent, in whatever letter case, in their words or in the names that they give
the exchange, the model, the service and why the reply ended. Neighbours: `treadle.models.failures.redact`, which also
knows what keys look like; `treadle.models.http_model`, through which errors and replies go.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Usage
from treadle.models.errors import ModelError, ToolUseFailed
from treadle.models.failures import SHORT_KEY, redact
from treadle.models.port import ModelReply

SECRET: Final = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)
"""How the names of headers look whose values are nobody else's business."""


BEGINNING: Final = 8
"""Characters of a key that are taken for it where the rest was cut off: what a server said is told only in part."""


class Hidden:
    """What is never shown.

    Args:
        key: the key; empty if there is none.
        headers: further headers, of which some may hold keys, by their names.
    """

    __slots__ = ("_keys",)

    def __init__(self, key: str, headers: Mapping[str, str] | None = None) -> None:
        held = [value.rpartition(" ")[2] for name, value in (headers or {}).items() if SECRET.search(name)]
        self._keys = (key, *held)

    def words(self, words: str) -> str:
        """`words` without keys."""
        for key in self._keys:
            words = _without_beginnings(redact(words, key), key)
        return words

    def name(self, name: str) -> str:
        """The provider's name for an exchange; empty where a key is in it."""
        return name if self.words(name) == name else ""

    def in_usage(self, usage: Usage) -> Usage:
        """`usage`, whose service has no key in its name."""
        service = self._own(usage.service)
        return usage if service == usage.service else replace(usage, service=service)

    def in_reply(self, whole: ModelReply, exchange: str) -> ModelReply:
        """`whole` without keys in the names that the server gave; `exchange` is that in its headers, or empty."""
        return replace(
            whole,
            request_id=self.name(exchange or whole.request_id),
            model=self._own(whole.model),
            finish_detail=self._own(whole.finish_detail),
            usage=None if whole.usage is None else self.in_usage(whole.usage),
        )

    def _own(self, name: str) -> str:
        """`name` without the keys themselves: names of models may look like keys."""
        for key in self._keys:
            if len(key) >= SHORT_KEY:
                name = re.sub(re.escape(key), "[key]", name, flags=re.IGNORECASE)
        return name

    def in_error(self, error: ModelError) -> None:
        """Takes keys out of `error`; also its cause, which a traceback would show, where that holds one."""
        error.args = (self.words(str(error)),)
        error.request_id = self.name(error.request_id)
        if isinstance(error, ToolUseFailed):
            error.failed_text = self.words(error.failed_text)
        cause = error.__cause__
        if cause is not None and self.words(repr(cause)) != repr(cause):
            error.__cause__ = None


def _without_beginnings(words: str, key: str) -> str:
    """`words` without beginnings of `key`, which are left where they were cut within it."""
    if len(key) <= BEGINNING:
        return words
    pieces, place = [], 0
    for found in re.finditer(re.escape(key[:BEGINNING]), words, re.IGNORECASE):
        end, rest = found.end(), key[BEGINNING:]
        same = 0
        while same < len(rest) and words[end + same : end + same + 1].lower() == rest[same].lower():
            same += 1
        pieces += [words[place : found.start()], "[key]"]
        place = end + same
    return "".join([*pieces, words[place:]])
