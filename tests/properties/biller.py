"""The provider's side of the bill: counted with real vocabularies and charged by rules that treadle does not know.

A run is told some of it, or nothing. What a provider charges for is what it was sent and what it sent, whether or not
anybody came to know.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
from vocabulary import count

from treadle import Price
from treadle.kernel.messages import AssistantMessage, Message, Usage
from treadle.models import ModelRequest

MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Charge:
    """What one call was charged: `at` how many events the journal held when it was made."""

    run_id: str
    at: int
    usage: Usage
    usd: Decimal


@dataclass(frozen=True)
class Biller:
    """How a provider counts and charges.

    Attributes:
        vocabulary: its tokenizer; empty counts a token for four characters.
        caches: whether what a request begins with is read from a cache where it was sent before, and written there
            where it was not, each at a price of its own.
        around_tools: what it adds to a request that has tools.
        whole_calls: whether a call is sent whole, and charged for then, and not piece by piece.
        input, output, read, write: dollars per million tokens.
    """

    vocabulary: str = ""
    caches: bool = False
    around_tools: int = 0
    whole_calls: bool = False
    input: int = 10
    output: int = 30
    read: int = 1
    write: Decimal = Decimal("12.5")

    @property
    def price(self) -> Price:
        """What its price list says."""
        return Price(self.input, self.output, cache_read=self.read, cache_write=self.write)

    def tokens(self, text: str) -> int:
        """Tokens of a text."""
        return count(text, self.vocabulary) if self.vocabulary else len(text) // 4

    def of_message(self, message: Message) -> int:
        """Tokens of a message, and a few around it and around each call."""
        content: Any = message.content
        if isinstance(content, str):
            return self.tokens(content) + 4
        return 4 + sum(self._of_part(part) for part in content)

    def _of_part(self, part: Any) -> int:
        if hasattr(part, "arguments"):
            return self.tokens(part.name) + self.tokens(part.arguments) + 4
        return self.tokens(getattr(part, "text", ""))

    def of_tools(self, request: ModelRequest) -> int:
        """Tokens of what a request offers."""
        if not request.tools:
            return 0
        return self.tokens(msgspec.json.encode(request.tools).decode("utf-8", "replace")) + self.around_tools

    def asked(self, request: ModelRequest, before: list[list[Message]]) -> Usage:
        """What a request counts; `before` are the histories of earlier ones, which its cache still has."""
        messages = list(request.messages)
        size = self.of_tools(request) + sum(map(self.of_message, messages))
        if not self.caches:
            return Usage(size, 0)
        same = max((_alike(messages, one) for one in before), default=0)
        known = self.of_tools(request) * bool(same) + sum(map(self.of_message, messages[:same]))
        return Usage(size, 0, cache_read_tokens=known, cache_write_tokens=size - known)

    def written(self, message: AssistantMessage) -> int:
        """Tokens of a reply."""
        return self.of_message(message)

    def charge(self, usage: Usage) -> Decimal:
        """What a call costs, by its own rules."""
        plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        cents = plain * self.input + usage.cache_read_tokens * self.read + usage.output_tokens * self.output
        return (cents + usage.cache_write_tokens * self.write) / MILLION


def _alike(messages: list[Message], other: list[Message]) -> int:
    same = 0
    for one, two in zip(messages, other, strict=False):
        if one != two:
            break
        same += 1
    return same


@dataclass
class Ledger:
    """All charges of a world, in the order in which they were made."""

    charges: list[Charge] = field(default_factory=list)
    before: int = 0
    """How many of them an earlier process made."""

    def of(self, runs: list[str], *, here: bool = False) -> tuple[int, Decimal]:
        """Tokens and dollars that these runs were charged; `here`, in this process."""
        mine = [one for one in self.charges[self.before if here else 0 :] if one.run_id in runs]
        return sum(one.usage.total_tokens for one in mine), sum((one.usd for one in mine), Decimal(0))
