"""How many tokens a message takes, estimated on the high side, and how many the next request of a run will."""

from treadle.context.media import media_tokens
from treadle.kernel.messages import File, Image, Message, Text, Thinking, ToolCall
from treadle.kernel.state import RunState

CHARS_PER_TOKEN = 3
"""Characters of ASCII text in a token, rounded down: English prose has about 4, JSON and code about 3."""

MESSAGE_TOKENS = 8
"""What a provider adds around a message, and around a call or image in it, rounded up."""


UNKNOWN_TOKENS = 1600
"""A part that only its provider can read, such as a search result or reasoning that is sealed."""


def estimate_text(text: str) -> int:
    """Tokens in `text`."""
    return text_weight(text) // CHARS_PER_TOKEN + 1


def text_weight(text: str) -> int:
    """What `text` weighs in characters of ASCII. Others can be a token or more each, so their bytes are counted."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) * 2


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
        elif isinstance(part, (Image, File)):
            total += media_tokens(part)
        else:
            total += UNKNOWN_TOKENS
    return total


def next_tokens(state: RunState) -> int:
    """What the next request will hold: as reported as far as that goes, then estimated on the high side."""
    return _with_rest(state, max(1.0, _factor(state)) if state.size.ratios else 1.0)


def context_tokens(state: RunState) -> int:
    """What the next request will hold, the part that nobody has counted as the model's ratio makes it likely."""
    return _with_rest(state, _factor(state) if state.size.ratios else 1.0)


def uncounted(state: RunState) -> int:
    """The estimate for the messages that nobody has counted yet."""
    rest = 0
    for message in state.messages.since(state.size.messages):
        rest += estimate_tokens(message)
    return rest


def _factor(state: RunState) -> float:
    """What estimates are multiplied by for the model that answered last."""
    ratio = state.size.ratios.get(state.steps[-1].model) if state.steps else None
    return 1.0 if ratio is None else ratio.factor


def _with_rest(state: RunState, factor: float) -> int:
    size, rest = state.size, uncounted(state)
    if factor == 1.0:
        return size.tokens + rest
    if not size.messages:
        return round((size.tokens + rest) * factor)
    return size.tokens + round(rest * factor)
