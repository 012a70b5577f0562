"""How many tokens a message takes: estimated on the high side, and the estimate held against what providers report."""

from msgspec import Struct

from treadle.kernel.messages import Message, Text, Thinking, ToolCall

CHARS_PER_TOKEN = 3
"""Characters of ASCII text in a token, rounded down: English prose has about 4, JSON and code about 3."""

MESSAGE_TOKENS = 8
"""What a provider adds around a message, and around a call or image in it, rounded up."""

MEDIA_TOKENS = 1600
"""An image or a page of a file; providers charge about 1,600 for the largest they do not scale down."""

FADING = 0.9
"""What an earlier comparison still counts when a later one of the same size is made."""

BELIEF = 200
"""Tokens that count as estimated rightly before anything was reported, so that short messages teach little."""

LEAST_RATIO, MOST_RATIO = 0.2, 5.0
"""Bounds of what is learnt: beyond them something else than the text was counted."""


class Ratio(Struct, frozen=True, gc=False):
    """What a model's provider reported, held against what was estimated for the same messages."""

    reported: float = 0.0
    estimated: float = 0.0

    def learnt(self, reported: int, estimated: int) -> "Ratio":
        """This ratio and one more comparison; the larger the messages, the more it counts."""
        return Ratio(self.reported * FADING + reported, self.estimated * FADING + estimated)

    @property
    def factor(self) -> float:
        """What an estimate is to be multiplied by; 1 as long as nothing was reported."""
        ratio = (self.reported + BELIEF) / (self.estimated + BELIEF)
        return min(max(ratio, LEAST_RATIO), MOST_RATIO)


def estimate_text(text: str) -> int:
    """Tokens in `text`. Outside ASCII a character can be a token or more, so its bytes are counted."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) * 2) // CHARS_PER_TOKEN + 1


def estimate_tokens(message: Message) -> int:
    """Tokens of `message` in a request."""
    content = message.content
    if isinstance(content, str):
        return estimate_text(content) + MESSAGE_TOKENS
    total = MESSAGE_TOKENS
    for part in content:
        if isinstance(part, (Text, Thinking)):
            total += estimate_text(part.text)
        elif isinstance(part, ToolCall):
            total += estimate_text(part.arguments + part.name) + MESSAGE_TOKENS
        else:
            total += MEDIA_TOKENS
    return total
