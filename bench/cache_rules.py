"""What providers charge for the requests of a run, by the published rules of their prompt caches.

No provider is asked: a body is taken apart as the provider says that it does. A token is four bytes of JSON, a price is
in plain input tokens. Nothing expires, as the steps of a run follow each other within minutes. The rules:

- Anthropic (https://platform.claude.com/docs/en/build-with-claude/prompt-caching): tools, system and messages in this
  order, cached up to each of at most four breakpoints if that is long enough (1,024 tokens for Sonnet 4.5, up to 4,096
  for others); from each, 20 blocks are looked through for what was written before. Another `tool_choice`, thinking or
  effort drops the messages, another format of the answer the system text too, another tool everything. Writing costs
  1.25 (5 minutes) or 2 (1 hour), reading 0.1.
- OpenAI (https://developers.openai.com/api/docs/guides/prompt-caching): the longest prefix of 1,024 tokens or more that
  a request of the same key had, in steps of 128; the tools and the schema of the answer are at its beginning, the
  choice among the tools is not in it. Writing costs nothing more, reading 0.1 (gpt-5). From gpt-5.6 on, writing costs
  1.25, and a prefix is found only where a request before ended it: at the end of its last message, or at a breakpoint.
- DeepSeek (https://api-docs.deepseek.com/guides/kv_cache), here in steps of 64 tokens, and Gemini
  (https://ai.google.dev/gemini-api/docs/caching, from 4,096 tokens): prefixes as OpenAI's, kept by themselves.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from treadle.models.port import ModelRequest

Body = dict[str, Any]

LOOKED_BACK = 20
MOST_BREAKPOINTS = 4


class Charged(NamedTuple):
    """One request's tokens.

    Attributes:
        read: out of the cache.
        written: into it.
        plain: neither.
        left: how many tokens the next request of the conversation can read, if it begins as this one did.
        lasting: how many are not for this request alone.
    """

    read: int
    written: int
    plain: int
    left: int
    lasting: int


class Cache(Protocol):
    """A provider's prompt cache."""

    write: float
    read: float
    minimum: int

    def ask(self, request: ModelRequest, body: Body) -> Charged:
        """What is charged for `body`, the request as it is sent."""


class AnthropicCache:
    """The cache of Anthropic Messages."""

    read = 0.1

    def __init__(self, minimum: int = 1024, write: float = 1.25) -> None:
        self.minimum, self.write = minimum, write
        self._entries: set[bytes] = set()

    def ask(self, request: ModelRequest, body: Body) -> Charged:
        """What is charged for `body`."""
        parts = [*body.get("tools", ()), *body.get("system", ())]
        before = len(parts)
        parts += [block for turn in body["messages"] for block in turn["content"]]
        plain = [_json({name: value for name, value in part.items() if name != "cache_control"}) for part in parts]
        config = body.get("output_config", {})
        system = _json(config.get("format"))
        messages = _json([body.get("tool_choice"), body.get("thinking"), config.get("effort")])
        names, name = list[bytes](), sha256()
        for place, part in enumerate(plain):
            name.update(messages if place == before else b"")
            name.update(system if place == len(body.get("tools", ())) else b"")
            name.update(part)
            names.append(name.digest())
        sizes = list(accumulate(len(part) // 4 for part in plain))
        marks = [place for place, part in enumerate(parts) if "cache_control" in part]
        if len(marks) > MOST_BREAKPOINTS:
            raise ValueError(f"{len(marks)} breakpoints; the provider refuses more than {MOST_BREAKPOINTS}")
        found = [place for mark in marks for place in self._found(names, mark)]
        hit = max((sizes[place] for place in found), default=0)
        kept = [mark for mark in marks if sizes[mark] >= self.minimum]
        self._entries |= {names[mark] for mark in kept}
        left = sizes[kept[-1]] if kept else 0
        passing = sum(len(part) // 4 for part in plain[len(plain) - request.passing :])
        return Charged(hit, max(0, left - hit), sizes[-1] - max(left, hit), left, sizes[-1] - passing)

    def _found(self, names: list[bytes], mark: int) -> list[int]:
        back = range(mark, max(-1, mark - LOOKED_BACK), -1)
        return [place for place in back if names[place] in self._entries][:1]


class ConverseCache(AnthropicCache):
    """The cache of Claude's models at Bedrock: the rules are Anthropic's, a cache point stands after what it ends.

    Source: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
    """

    def ask(self, request: ModelRequest, body: Body) -> Charged:
        """What is charged for `body`."""
        config, own = body.get("toolConfig", {}), body.get("additionalModelRequestFields", {})
        output = body.get("outputConfig", {}) | own.get("output_config", {})
        asked = {
            "tools": _marked(config.get("tools", ())),
            "system": _marked(body.get("system", ())),
            "messages": [{"content": _marked(turn["content"])} for turn in body["messages"]],
            "tool_choice": config.get("toolChoice", own.get("tool_choice")),
            "thinking": own.get("thinking"),
            "output_config": {"format": output.get("textFormat"), "effort": output.get("effort")},
        }
        return super().ask(request, asked)


def _marked(blocks: Iterable[Body]) -> list[Body]:
    """The blocks with each cache point as a mark on the one before it."""
    marked: list[Body] = []
    for block in blocks:
        if "cachePoint" in block:
            marked[-1] = marked[-1] | {"cache_control": block["cachePoint"]}
        else:
            marked.append(block)
    return marked


class PrefixCache:
    """A cache that finds by itself the longest prefix that an earlier request had."""

    def __init__(self, minimum: int = 1024, step: int = 128, read: float = 0.1) -> None:
        self.minimum, self.step, self.read, self.write = minimum, step, read, 1.0
        self._sent: dict[str, list[bytes]] = defaultdict(list)

    def ask(self, request: ModelRequest, body: Body) -> Charged:
        """What is charged for `body`."""
        parts = _prompt(body)
        sent = b"".join(parts)
        before = self._sent[body.get("prompt_cache_key", "")]
        hit = self._rounded(max((_common(one, sent) for one in before), default=0))
        lasting = sum(map(len, parts[: len(parts) - request.passing]))
        before.append(sent)
        return Charged(hit, 0, len(sent) // 4 - hit, self._rounded(lasting), lasting // 4)

    def _rounded(self, size: int) -> int:
        tokens = size // 4 // self.step * self.step
        return tokens if tokens >= self.minimum else 0


class BreakpointCache:
    """OpenAI's from gpt-5.6 on: a prefix ends at a breakpoint, or with the last message of a request."""

    minimum, read, write = 1024, 0.1, 1.25

    def __init__(self) -> None:
        self._entries: dict[str, set[bytes]] = defaultdict(set)

    def ask(self, request: ModelRequest, body: Body) -> Charged:
        """What is charged for `body`."""
        parts = _prompt(body)
        sizes = [size // 4 for size in accumulate(map(len, parts))]
        names, name = list[bytes](), sha256()
        for part in parts:
            name.update(part)
            names.append(name.digest())
        entries = self._entries[body.get("prompt_cache_key", "")]
        hit = max((size for size, name in zip(sizes, names, strict=True) if name in entries), default=0)
        items = body.get("messages", body.get("input", ()))
        first = len(parts) - len(items)
        marks = [first + place for place, item in enumerate(items) if "prompt_cache_breakpoint" in json.dumps(item)]
        ends = [place for place in [*marks[-3:], len(parts) - 1] if sizes[place] >= self.minimum]
        entries.update(names[place] for place in ends)
        lasting = len(parts) - request.passing
        left = max((sizes[place] for place in range(lasting) if sizes[place] >= self.minimum), default=0)
        written = max(0, sizes[-1] - hit) if ends else 0
        return Charged(hit, written, sizes[-1] - hit - written, left, sizes[lasting - 1])


class Bill:
    """What the runs of one feature cost.

    Attributes:
        cost: in plain input tokens.
        ideal: what it would be if each token were written once and read in each request after.
        breaks: how many requests did not find what the one before them in their conversation had left.
        requests: how many there were.
    """

    def __init__(self, cache: Cache) -> None:
        self.cost = self.ideal = 0.0
        self.breaks = self.requests = 0
        self._cache = cache
        # By what a conversation begins with.
        self._before: dict[str, Charged] = {}

    def ask(self, request: ModelRequest, body: bytes) -> None:
        """Charges one request."""
        cache = self._cache
        charged = cache.ask(request, json.loads(body))
        conversation = repr(list(request.messages[:2]))
        before = self._before.get(conversation, Charged(0, 0, 0, 0, 0))
        self._before[conversation] = charged
        self.requests += 1
        self.breaks += charged.read < before.left
        self.cost += charged.read * cache.read + charged.written * cache.write + charged.plain
        read = min(before.left, charged.lasting)
        passing = charged.read + charged.written + charged.plain - charged.lasting
        new = charged.lasting - read
        self.ideal += read * cache.read + new * (cache.write if charged.lasting >= cache.minimum else 1.0) + passing

    @property
    def times(self) -> float:
        """The bill, in ideal ones."""
        return self.cost / self.ideal


def _prompt(body: Body) -> list[bytes]:
    """What the model reads of a request in OpenAI's dialects and Google's, in the order in which it does."""
    if "contents" in body:
        shape = body["generationConfig"].get("responseJsonSchema")
        head = [_json(part) for part in (body.get("tools"), shape, body.get("systemInstruction")) if part is not None]
        return [*head, *[_json(part) for turn in body["contents"] for part in turn["parts"]]]
    shape = body.get("response_format", body.get("text"))
    head = [_json(part) for part in (body.get("tools"), shape, body.get("instructions")) if part is not None]
    return [*head, *[_json(_unmarked(item)) for item in body.get("messages", body.get("input", ()))]]


def _unmarked(item: Any) -> Any:
    """`item` without breakpoints, a text in one part as that text."""
    if isinstance(item, list):
        return [_unmarked(one) for one in item]
    if not isinstance(item, dict):
        return item
    marked = {name: _unmarked(value) for name, value in item.items() if name != "prompt_cache_breakpoint"}
    for name in ("content", "output"):
        match marked.get(name):
            case [{"type": "text" | "input_text", "text": str() as text}]:
                marked[name] = text
    return marked


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
