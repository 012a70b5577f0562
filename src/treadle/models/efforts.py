"""Efforts: how hard a model is to think, in a word or as a budget of tokens, whichever its provider takes.

Pure. Neighbours: the dialects, `treadle.kernel.messages.ModelSettings.thinking`.
"""

from collections.abc import Mapping
from typing import Final

BUDGETS: Final[Mapping[str, int]] = {"none": 0, "low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens to think with, for the models that take a budget; an effort is told from a budget by the same."""

ANSWER_TOKENS: Final = 1_024
"""Tokens of a reply that are left to its answer where it may not be as long as its thinking."""


def effort_of(wish: str | int) -> str:
    """The effort that comes closest to what is wished."""
    if isinstance(wish, str):
        return wish
    return next((effort for effort, tokens in BUDGETS.items() if wish <= tokens), "high")


def tokens_of(wish: str | int) -> int:
    """The tokens to think with that are wished."""
    return BUDGETS[wish] if isinstance(wish, str) else wish
