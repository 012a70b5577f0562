"""Spelling: short forms and slips of small words, and a slip in a word that a tool is described by.

Both are put right only where nothing can be planned of what was written, and only to tell something; the answer says
what the question was read as. Read by `model`.
"""

import re
from collections.abc import Collection

from treadle.models.offline.grammar.words import alike, is_function_word, is_verb, singular, stem, tokens

_SMALL = {
    "whats": "what's", "wats": "what's", "wat": "what", "waht": "what", "whta": "what", "hows": "how's", "hwo": "how",
    "wheres": "where's", "whos": "who's", "mny": "many", "manny": "many",
    "plase": "please", "teh": "the", "hte": "the", "cna": "can", "shwo": "show", "giv": "give",
    "dont": "don't", "doesnt": "doesn't", "isnt": "isn't", "arent": "aren't", "wasnt": "wasn't", "didnt": "didn't",
    "havent": "haven't", "hasnt": "hasn't", "wont": "won't", "cant": "can't",
}  # fmt: skip
_SMALL_WORD = re.compile(rf"(?<![\w'’./@-])(?:{'|'.join(_SMALL)})(?![\w'’./@-])")
_QUOTED = re.compile(r"(\"[^\"]*\"|“[^”]*”|`[^`]*`)")
_LEAST = 6


def plainly(text: str) -> str:
    """A question with the short forms and slips of its small words put right, but for what stands in quotes."""
    pieces = _QUOTED.split(text)
    return "".join(
        piece if place % 2 else _SMALL_WORD.sub(lambda match: _SMALL[match[0]], piece)
        for place, piece in enumerate(pieces)
    )


def respelled(text: str, known: Collection[str]) -> str | None:
    """A question with each word that lacks a letter, has one twice, or two the wrong way round, as the known word that
    it is then; None if there is no such word, or one may be two of them.

    Args:
        text: the question.
        known: the words that tools are described by, in lower case.
    """
    changed = text
    for token in reversed(tokens(text)):
        plain = token.text.isalpha() and token.text.islower() and len(token.low) >= _LEAST - 1
        if not plain or token.low in known or singular(token.low) in known:
            continue
        if is_function_word(token.text) or is_verb(token.text):
            continue
        meant = {word for word in known if len(word) >= _LEAST and _is_slip(token.low, word)}
        if len(meant) > 1:
            return None
        if meant:
            changed = f"{changed[: token.start]}{meant.pop()}{changed[token.end :]}"
    return changed if changed != text else None


def _is_slip(written: str, word: str) -> bool:
    """Whether a word was meant, and written with a letter too few, doubled, or swapped with the next."""
    if written[0] != word[0] or singular(written) == singular(word) or alike(stem(written), stem(word)):
        # To manage is not a slip for a manager.
        return False
    if len(written) == len(word) - 1:
        return any(word[:place] + word[place + 1 :] == written for place in range(1, len(word) - 1))
    if len(written) == len(word) + 1:
        return any(
            written[place] == written[place - 1] and written[:place] + written[place + 1 :] == word
            for place in range(1, len(written))
        )
    swaps = range(1, len(word) - 1)
    return len(written) == len(word) and any(
        word[:place] + word[place + 1] + word[place] + word[place + 2 :] == written for place in swaps
    )
