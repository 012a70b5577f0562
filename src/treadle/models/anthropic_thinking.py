"""Anthropic's thinking: how hard a Claude model is asked to think, by an effort or by a budget of tokens.

Pure. Neighbour: `treadle.models.anthropic`, which writes the rest of a request.
"""

import re
import sys
from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Json, ModelSettings
from treadle.models.efforts import ANSWER_TOKENS, effort_of, tokens_of
from treadle.models.errors import BadRequest

SMALLEST_BUDGET: Final = 1_024
CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(?:(\d{1,2})(?:[-.](\d{1,2}))?(?!\d))?")


def adaptive(model: str) -> bool:
    """Whether a model thinks by effort (Claude 4.6 and later) and not by a budget of tokens."""
    name = CLAUDE.search(model)
    if name is None:
        return False
    return name[1] is None or (int(name[1]), int(name[2] or 0)) >= (4, 6)


def most_tokens(model: str) -> int | None:
    """The most tokens that `model` takes as `max_tokens`, by its name; None for a name that does not tell.

    Source: https://platform.claude.com/docs/en/about-claude/models/overview
    """
    name = CLAUDE.search(model)
    if name is None or name[1] is None:
        return None
    version = int(name[1]), int(name[2] or 0)
    if version < (3, 5):
        return 4_096
    if version < (3, 7):
        return 8_192
    if version < (4, 5) and "opus" in model:
        return 32_000
    return 64_000 if version < (4, 6) else 128_000


def longest_thinking(settings: ModelSettings, model: str, max_tokens: int) -> int:
    """The most tokens that a reply of `model` may have, its thinking included.

    Args:
        settings: those of the request, which leave `max_tokens` to the dialect. Their `extra` may have a budget too.
        model: the model's name.
        max_tokens: how long the answer may be. What is thought comes on top, as far as the model goes.
    """
    return min(max_tokens + (budget_of(settings, model) or 0), most_tokens(model) or sys.maxsize)


def thinking_fields(settings: ModelSettings, model: str, max_tokens: int, forced: bool) -> Json:
    """The fields that say how hard to think, in a reply of at most `max_tokens`.

    A model that thinks by a budget cannot be made to call a tool at the same time; the tool call is then what counts.
    Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    """
    wish = settings.thinking
    if wish is None:
        return {}
    if wish in ("none", 0):
        return {"thinking": {"type": "disabled"}}
    budget = budget_of(settings, model)
    if budget is None:
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort_of(wish)}}
    if forced:
        return {}
    if settings.max_tokens is None:
        return {"thinking": {"type": "enabled", "budget_tokens": min(budget, max_tokens - ANSWER_TOKENS)}}
    if settings.max_tokens <= SMALLEST_BUDGET:
        raise BadRequest(
            f"{model} cannot think within max_tokens={settings.max_tokens}: it needs more than {SMALLEST_BUDGET}. "
            'Raise max_tokens, leave it out, or set thinking="none"'
        )
    budget = max(SMALLEST_BUDGET, min(budget, settings.max_tokens - ANSWER_TOKENS))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def budget_of(settings: ModelSettings, model: str) -> int | None:
    """The tokens that `model` may think for; None if it does not think, or by effort."""
    wish, extra = settings.thinking, (settings.extra or {}).get("thinking")
    own = extra.get("budget_tokens") if isinstance(extra, dict) else None
    if isinstance(own, int):
        return max(own, SMALLEST_BUDGET)
    if wish in (None, "none", 0) or adaptive(model):
        return None
    return max(tokens_of(wish), SMALLEST_BUDGET)


def held_thinking(settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
    """`settings` whose thinking leaves an answer room in `tokens`.

    A budget is halved until it fits, and not taken down with what is left of a limit from step to step: another budget
    drops the messages that are cached.
    """
    budget = budget_of(settings, model)
    if budget is None:
        return settings
    room = tokens - ANSWER_TOKENS
    while budget > room >= SMALLEST_BUDGET:
        budget = max(budget // 2, SMALLEST_BUDGET)
    thinking = "none" if room < SMALLEST_BUDGET else budget
    extra = settings.extra
    if extra and isinstance(extra.get("thinking"), dict):
        own = {"type": "disabled"} if thinking == "none" else extra["thinking"] | {"budget_tokens": thinking}
        return replace(settings, extra=extra | {"thinking": own})
    return replace(settings, thinking=thinking)
