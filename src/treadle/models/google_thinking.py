"""Gemini's thinking: how hard a model is asked to think, by a level or by a budget of tokens.

Pure. Gemini 2.5 takes a budget, and later models a level: one that is asked for both refuses the request.
Source: https://ai.google.dev/gemini-api/docs/thinking. Neighbour: `treadle.models.google`.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Json, ModelSettings
from treadle.models.efforts import ANSWER_TOKENS, BUDGETS, effort_of, tokens_of

LEVELS: Final[Mapping[str, str]] = {"none": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
LEAST_BUDGET: Final = 512
"""The smallest budget that each model takes, besides none at all."""
GENERATION: Final = re.compile(r"gemini-(\d{1,2})(?:\.\d{1,2})?(?!\d)")
THOUGHTLESS: Final = re.compile(r"image|tts|audio|live|embedding")
"""Models that may refuse to be told how hard to think."""
NEWEST: Final = 99


def generation(model: str) -> int:
    """Of which generation of Gemini `model` is: 2 for gemini-2.5-pro, the newest for gemini-flash-latest, else 0."""
    name = GENERATION.search(model)
    if name is not None:
        return int(name[1])
    return NEWEST if "gemini" in model else 0


def thinking_config(settings: ModelSettings, model: str) -> Json:
    """The `thinkingConfig` for `settings`; empty where they leave it to the model.

    A budget leaves an answer room in `max_tokens`, in which Gemini counts its thinking.
    """
    wish = settings.thinking
    if wish is None:
        return {}
    shown = {"includeThoughts": wish not in ("none", 0)}
    if generation(model) != 2:
        return {"thinkingLevel": LEVELS[effort_of(wish)]} | shown
    budget = tokens_of(wish)
    if settings.max_tokens is not None and budget:
        budget = min(budget, _room(model, settings.max_tokens))
    return {"thinkingBudget": budget, "includeThoughts": budget != 0}


def held_thinking(settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
    """`settings` whose thinking leaves an answer room in `tokens`, also where the model thinks of its own accord."""
    if THOUGHTLESS.search(model):
        return settings
    made, wish = generation(model), settings.thinking
    room = tokens - ANSWER_TOKENS
    if made > 2 and wish not in ("none", "low", 0) and room < BUDGETS["medium"]:
        return replace(settings, thinking="low")
    if made == 2 and "gemini-2.5" in model and wish is None and room < BUDGETS["high"]:
        return replace(settings, thinking=_room(model, tokens))
    return settings


def _room(model: str, tokens: int) -> int:
    """The most that `model` may think for in a reply of `tokens`; a Pro never thinks for nothing."""
    room = tokens - ANSWER_TOKENS
    return room if room >= LEAST_BUDGET else 128 if "pro" in model else 0
