"""OpenAI's prompt cache: what a request says so that the prefix of its run is found in it, in either dialect.

Pure. The rules are those of https://developers.openai.com/api/docs/guides/prompt-caching: a prefix of 1,024 tokens or
more is cached by itself, the tools and an answer's schema at its beginning; the choice among the tools is no part of
it. Neighbours: `treadle.models.openai_chat`, `treadle.models.openai_responses`; Anthropic's cache is another matter.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from typing import Final, Literal, get_args

from msgspec import Struct

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.history import Trail
from treadle.models.hosts import Host
from treadle.models.port import ModelRequest

Keep = Literal["in_memory", "24h", "30m", "12h"]
"""How long a prefix is kept: "in_memory" or up to "24h" (models before gpt-5.6); at least "30m" or "12h" (since)."""

KEEPS: Final = get_args(Keep)

LOOKED_AT: Final = 65_536
"""How many bytes of a conversation's first message tell it from others."""


VERSION: Final = re.compile(r"(?:^|[/:])gpt-(\d{1,2})(?:\.(\d{1,2}))?")
BREAKPOINT: Final = b',"prompt_cache_breakpoint":{"mode":"explicit"}'
# How what is asked of a model begins in either dialect, a text in it, and how it ends where it is in parts.
ASKED: Final = (b'{"role":"user"', b'{"role":"system"', b'{"role":"tool"', b'{"type":"function_call_output"')
CONTENT: Final = (b'"content":"', b'"output":"')
PARTS_END: Final = b"}]},"
BREAKPOINTS: Final = 2


class PromptCache(Struct, frozen=True):
    """What is asked of the cache.

    Attributes:
        host: the server that has it.
        key: requests of one key go to one machine as long as they are few (about 15 a minute), and find there what
            the ones before left. None for a key of the conversation's own, made of its instructions and its first
            message, where the host takes one.
        keep: how long a prefix is kept; None leaves it to the provider.
    """

    host: Host
    key: str | None = None
    keep: Keep | None = None

    def fields(self, trail: Trail[bytearray]) -> Json:
        """The fields of the request body whose history is `trail`."""
        fields: Json = {}
        if self.key is not None:
            fields["prompt_cache_key"] = self.key
        elif self.host.cache_key and trail.made:
            fields["prompt_cache_key"] = _key(trail)
        if self.keep in ("in_memory", "24h"):
            fields["prompt_cache_retention"] = self.keep
        elif self.keep is not None:
            fields["prompt_cache_options"] = {"ttl": self.keep}
        return fields

    def marks(
        self, trail: Trail[bytearray], request: ModelRequest, model: str, kind: Literal["text", "input_text"]
    ) -> list[tuple[int, bytes]]:
        """What to put into the history so that it is cached up to the messages that pass, and where.

        Since gpt-5.6 a prefix is written where the last message ends, and found there only; models before find any.
        The second breakpoint is where the request before this one had its first. `kind` is that of a text in parts.
        """
        known = VERSION.search(model)
        if not request.passing or not self.host.cache_key or known is None:
            return []
        if (int(known[1]), int(known[2] or 0)) < (5, 6):
            return []
        places: list[tuple[int, int]] = []
        follows = False
        for start, end in islice(trail.backwards(), request.passing, None):
            asked = trail.made.startswith(ASKED, start, end)
            if asked and not follows:
                places.insert(0, (start, end))
                if len(places) == BREAKPOINTS:
                    break
            follows = asked
        return [mark for start, end in places for mark in _marked(trail.made, start, end, kind)]

    def described(self, request: ModelRequest) -> tuple[ToolSpec, ...]:
        """The tools to describe: the same in each step of a run, unless the host leaves out what is taken away."""
        usual = request.usual
        return request.tools if usual is None or self.host.taken_away == "left_out" else usual.tools

    def allowed(self, request: ModelRequest) -> Sequence[str] | None:
        """The names of the tools that may be called, where that is to be said apart from their description."""
        if self.host.taken_away != "allowed_tools" or request.tool_choice not in ("auto", "required"):
            return None
        names = [tool.name for tool in request.tools]
        return names if len(names) < len(self.described(request)) else None


def _marked(made: bytearray, start: int, end: int, kind: str) -> list[tuple[int, bytes]]:
    """The breakpoint at the end of the item that ends at `end`; a plain text becomes a list of one part for it."""
    if made.startswith(PARTS_END, end - len(PARTS_END), end):
        return [(end - len(PARTS_END), BREAKPOINT)]
    place, name = max((made.rfind(name, start, end), name) for name in CONTENT)
    return [
        (place + len(name) - 1, b'[{"type":"%b","text":' % kind.encode()),
        (end - len(b"},"), BREAKPOINT + b"}]"),
    ]


def _key(trail: Trail[bytearray]) -> str:
    first = trail.places[1] if len(trail.places) > 1 else len(trail.made)
    beginning = sha256("\n".join(trail.system).encode("utf-8", "replace"))
    beginning.update(trail.made[: min(first, LOOKED_AT)])
    return beginning.hexdigest()[:32]
