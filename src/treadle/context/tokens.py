"""How many tokens a message takes, estimated on the high side, and how many the next request of a run will."""

from treadle.context.media import media_tokens
from treadle.kernel.accounts import LIKELY
from treadle.kernel.messages import File, Image, Message, Text, Thinking, ToolCall, ToolMessage
from treadle.kernel.state import RunState

UNIT = 32
"""What a token weighs in `text_weight`."""

SLACK = 4
"""What a short text may have in tokens above what it weighs: one rare word tells more of it than of a long one."""

MESSAGE_TOKENS = 8
"""What a provider adds around a message, and around a call or image in it, rounded up."""

RESULT_TOKENS = 28
"""What a provider adds around the result of a call, its name left aside: two dozen at Anthropic, as it was seen to."""

SEALED = 4
"""Characters of thinking that is sealed in a token of it: three bytes."""

UNKNOWN_TOKENS = 1600
"""A part that only its provider can read, such as a search result or a call that it made itself."""

_WEIGHTS = {
    b"etaoinsr": 6,
    b"hldcu": 12,
    b"mfpgybwvkjqxz": 29,
    b"ETAOINSRHLDCUMFPGYBWVKJQXZ": 24,
    b"0123456789": 36,
    b" ": 15,
    b"\t": 24,
    b"\r\n": 30,
    b".,'-": 23,
    b'"():_/=': 27,
    b"!#$%&*+;<>?@[\\]^`{|}~": 32,
    bytes([*range(9), 11, 12, *range(14, 32), 127]): 32,
    bytes(range(0xC2, 0xCC)): 40,
    b"\xcc\xcd": 72,
    b"\xd0\xd1": 24,
    bytes([0xCE, 0xCF, *range(0xD2, 0xE0)]): 46,
    b"\xe0\xe1": 98,
    b"\xe2": 52,
    b"\xe3": 32,
    bytes(range(0xE4, 0xEA)): 54,
    bytes(range(0xEA, 0xEE)): 42,
    b"\xee\xef": 64,
    bytes(range(0xF0, 0xF5)): 200,
}
"""What each byte of UTF-8 weighs; of a character that is no ASCII, the first one stands for all."""

_WEIGHT = bytes(next((weight for many, weight in _WEIGHTS.items() if byte in many), 0) for byte in range(256))
_KIND = bytes(
    ord("0" if b"0" <= byte <= b"9" else "a" if byte.isalpha() else " " if byte == b" " else ".")
    for byte in (bytes([code]) for code in range(256))
)


def estimate_text(text: str) -> int:
    """Tokens in `text`, on the high side for every kind of text."""
    return text_weight(text) // UNIT + SLACK if text else 0


def text_weight(text: str) -> int:
    """What `text` weighs, in 1/`UNIT` of a token: letters that make up common words little, figures a token each.

    A letter after a digit begins a token, as in a UUID, and a space after one is a token of its own; many spaces in a
    row make few. The weights are the least, to a few per cent, that are not too low for any of a hundred kinds of text
    in six vocabularies: docs/costs.md says which.
    """
    # A pass over the bytes costs a few nanoseconds each: what is new is weighed in every step, and may be long.
    data = text.encode("utf-8", "surrogatepass").replace(b"    ", b" ")
    kinds = data.translate(_KIND)
    return sum(data.translate(_WEIGHT)) + UNIT * kinds.count(b"0a") + UNIT // 2 * kinds.count(b"0 ")


def estimate_tokens(message: Message) -> int:
    """Tokens of `message` in a request, on the high side."""
    content = message.content
    total = MESSAGE_TOKENS
    if isinstance(message, ToolMessage):
        total = RESULT_TOKENS + text_weight(message.name) // UNIT
    if isinstance(content, str):
        return total + estimate_text(content)
    for part in content:
        if isinstance(part, Text):
            total += estimate_text(part.text)
        elif isinstance(part, Thinking):
            sealed = (part.data or "") if part.text else (part.data or part.signature or "")
            total += estimate_text(part.text) + len(sealed) // SEALED
        elif isinstance(part, ToolCall):
            total += estimate_text(part.name + part.arguments) + MESSAGE_TOKENS
        elif isinstance(part, (Image, File)):
            total += media_tokens(part)
        else:
            total += UNKNOWN_TOKENS
    return total


def next_tokens(state: RunState) -> int:
    """What the next request will hold at most: as reported as far as that goes, then estimated on the high side."""
    return _with_rest(state, most(state))


def context_tokens(state: RunState) -> int:
    """What the next request is likely to hold: as reported, and what nobody has counted by the model's ratio."""
    return _with_rest(state, likely(state))


def most(state: RunState) -> float:
    """What estimates are multiplied by to be high for all models of the run: the most that was learnt of any, or 1."""
    return max([1.0, *[ratio.most for ratio in state.size.ratios.values()]])


def likely(state: RunState) -> float:
    """What estimates are multiplied by to be likely, for the model that answered last."""
    ratio = state.size.ratios.get(state.steps[-1].model) if state.steps else None
    return LIKELY if ratio is None else ratio.factor


def uncounted(state: RunState) -> int:
    """The estimate for the messages that nobody has counted yet."""
    return sum([estimate_tokens(message) for message in state.messages.since(state.size.messages)])


def _with_rest(state: RunState, factor: float) -> int:
    size, rest = state.size, uncounted(state)
    if not size.messages:
        return round((size.tokens + rest) * factor)
    return size.tokens + round(rest * factor)
