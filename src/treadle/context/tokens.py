"""How many tokens a message takes, estimated on the high side, and how many the next request of a run will."""

from functools import lru_cache

from treadle.context.media import LARGEST_IMAGE, media_tokens
from treadle.context.texts import LIKELY, UNIT, estimate_text, text_weight
from treadle.kernel.accounts import BELIEF, MOST_RATIO, Ratio
from treadle.kernel.messages import File, Image, Message, Text, Thinking, ToolCall, ToolMessage
from treadle.kernel.state import RunState

MESSAGE_TOKENS = 8
"""What a provider adds around a message, and around a call or image in it, rounded up."""

RESULT_TOKENS = 28
"""What a provider adds around the result of a call, its name left aside: two dozen at Anthropic, as it was seen to."""

SEALED = 4
"""Characters of thinking that is sealed in a token of it: three bytes."""

UNKNOWN_TOKENS = 1600
"""A part that only its provider can read, such as a search result or a call that it made itself."""

LEAST_RATIO = 0.2
"""The least that is believed of what was learnt; `MOST_RATIO` is the most."""

CITING = frozenset(
    ("annotations", "citationMetadata", "citations", "groundingMetadata", "search_results", "urlContextMetadata")
)
"""The fields of a part that says what the text before it cites, of which next to nothing is sent again."""


def estimate_tokens(message: Message) -> int:
    """Tokens of `message` in a request, on the high side."""
    content = message.content
    total = MESSAGE_TOKENS
    if type(message) is ToolMessage:
        total = RESULT_TOKENS + _name_tokens(message.name)
    if isinstance(content, str):
        return total + estimate_text(content)
    for part in content:
        if type(part) is Text:
            total += estimate_text(part.text)
        elif type(part) is Thinking:
            sealed = (part.data or "") if part.text else (part.data or part.signature or "")
            total += estimate_text(part.text) + len(sealed) // SEALED
        elif type(part) is ToolCall:
            total += estimate_text(part.name + part.arguments) + MESSAGE_TOKENS
        elif isinstance(part, (Image, File)):
            total += media_tokens(part)
        elif part.shown:
            total += LARGEST_IMAGE
        elif CITING.isdisjoint(part.value):
            total += UNKNOWN_TOKENS
        else:
            total += _sealed_in(part.value.get("citations"))
    return total


def _sealed_in(citations: object) -> int:
    """Tokens of what goes back of `citations`: by what Claude knows again what it found in the web."""
    cited = citations if isinstance(citations, list) else []
    sealed = [one.get("encrypted_index") for one in cited if isinstance(one, dict)]
    return sum(len(str(one or "")) // SEALED for one in sealed)


@lru_cache(256)
def _name_tokens(name: str) -> int:
    """Tokens of a tool's name; a run has few, and says each of them often."""
    return text_weight(name) // UNIT


def next_tokens(state: RunState) -> int:
    """What the next request will hold at most: as reported as far as that goes, then estimated on the high side."""
    return _with_rest(state, most(state))


def context_tokens(state: RunState) -> int:
    """What the next request is likely to hold: as reported, and what nobody has counted by the model's ratio."""
    return _with_rest(state, likely(state))


def most(state: RunState) -> float:
    """What estimates are multiplied by to be high for all models of the run: the most that was learnt of any, or 1."""
    ratios = state.size.ratios
    return max([1.0, *[ratio.most for ratio in ratios.values()]]) if ratios else 1.0


def likely(state: RunState) -> float:
    """What estimates are multiplied by to be likely, for the model that answered last."""
    ratio = state.size.ratios.get(state.steps[-1].model) if state.steps else None
    return LIKELY if ratio is None else factor_of(ratio)


def factor_of(ratio: Ratio) -> float:
    """What an estimate is to be multiplied by to be likely, by what was learnt of the model."""
    learnt = (ratio.reported + LIKELY * BELIEF) / (ratio.estimated + BELIEF)
    return min(max(learnt, LEAST_RATIO), MOST_RATIO)


def uncounted(state: RunState) -> int:
    """The estimate for the messages that nobody has counted yet."""
    tokens = 0
    for message in state.messages.since(state.size.messages):
        tokens += estimate_tokens(message)
    return tokens


def _with_rest(state: RunState, factor: float) -> int:
    size, rest = state.size, uncounted(state)
    if not size.messages:
        return round((size.tokens + rest) * factor)
    return size.tokens + round(rest * factor)
