"""Words: tokens, stems, which words are alike, and how close a written name is to a real one.

Pure functions over text, standard library only. `english` has the word lists; everything else in the package builds on
these.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from treadle.models.offline.grammar.english import FUNCTION_WORDS, GROUPS, VERBS

_TOKEN = re.compile(
    r"""
    [^\W\d_][\w.+-]*@[\w-]+\.[\w.-]*\w            # an e-mail address
    | https?://\S+
    | [A-Z]\w+(?:/[A-Z]\w+)+                      # Area/Place
    | (?<![\w/])(?!and/or\b)/?[a-z][\w.-]+(?:/[\w.-]*\w{2})+    # owner/repository, a path
    | (?<![\w.+-])(?:[^\W\d]\w*(?:\+{1,2}|\#)|[A-Za-z][-−–*]|[A-Z]{2,3}[-−–])(?![\w+#*−–-])  # a grade, C++, Gold+
    | \d{4}-\d{2}(?:-\d{2})?(?!\d)
    | \d{1,2}:\d{2}
    | \d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)
    | \d+(?:\.\d+){2,}(?!\w)                      # a version
    | \d+\.\d+(?!\w)
    | \d+(?![\w])(?!-[A-Z]\b)
    | \d\w*(?:-\w+)*
    | [^\W\d](?:\w|[-.](?=\w))*(?=['’]s\b)
    | [^\W\d]\w*(?:['’](?:t|re|ve|ll|d|m)\b)?(?:[-.](?=\w)\w+)*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number of a text, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """The word in lower case."""
        return self.text.lower()

    @property
    def stem(self) -> str:
        """The word without its ending."""
        return stem(self.text)


def tokens(text: str) -> tuple[Token, ...]:
    """The words and numbers of `text`, in order; identifiers, dates and codes are kept whole."""
    return _short_tokens(text) if len(text) <= _SHORT else _tokens(text)


def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text))


def parts(name: str) -> tuple[str, ...]:
    """The words inside an identifier: `unitPrice`, `unit_price` and "unit price" are all unit, price; in lower case."""
    return _short_parts(name) if len(name) <= _SHORT else _parts(name)


def _parts(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(word.lower() for word in re.findall(r"[^\W_]+", spaced))


# A question, and what tools are called and described by, is read hundreds of times; results may be of any size.
_SHORT = 400
_short_tokens = lru_cache(maxsize=1024)(_tokens)
_short_parts = lru_cache(maxsize=8192)(_parts)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A light stem: plural, -ing, -ed, -ation and -ate endings are dropped, and a final e."""
    low = word.lower()
    if len(low) <= 3 or not low.isalpha():
        return low
    low = singular(low)
    for ending, least in (("ation", 8), ("ing", 6), ("ed", 5), ("ate", 7), ("ly", 6)):
        if low.endswith(ending) and len(low) >= least:
            low = low[: -len(ending)]
            if ending in ("ing", "ed") and len(low) > 3 and low[-1] == low[-2] and low[-1] not in "lsz":
                low = low[:-1]
            break
    return low[:-1] if low.endswith("e") and len(low) > 3 and low not in _WITH_E else low


# Without their e these would be other words: "how far" asks for no fare.
_WITH_E = frozenset({"fare", "care", "wine", "plane", "pine", "cape", "tape", "tube", "kite"})
_POTATOES = re.compile(r"(?<!can|.sh)(?<=\w\w\w)oes$")


def singular(word: str) -> str:
    """The singular of an English noun, as far as its ending tells; only the last word of a phrase changes."""
    low = word.lower()
    if len(low) <= 3 or low.endswith(("ss", "us", "is", "news")) or not low.endswith("s"):
        return word
    if low.endswith("ies") and len(low) > 4:
        return word[:-3] + "y"
    if low.endswith(("xes", "ches", "shes", "sses", "zes")) or _POTATOES.search(low):
        return word[:-2]
    return word[:-1]


_STOP = FUNCTION_WORDS | {"what's", "don't", "doesn't", "i'd", "we're", "i'm", "they're", "we've", "you're", "i've"}
_VERB_STEMS = frozenset(stem(word) for word in VERBS)


def is_function_word(word: str) -> bool:
    """Whether the word only holds a sentence together."""
    return word.lower() in _STOP


def is_verb(word: str) -> bool:
    """Whether the word is first of all a verb, and so names no thing."""
    return word.lower() in VERBS or stem(word) in _VERB_STEMS


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, group in enumerate(GROUPS):
        for word in group:
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def groups_of(word_stem: str) -> frozenset[int]:
    """The groups of like-minded words that a stem is in."""
    return _groups().get(word_stem, frozenset())


def alike(left: str, right: str) -> float:
    """How much two stems mean the same: 1 if equal, 0.8 if one begins with the other, 0.5 if in one group, else 0."""
    if left == right:
        return 1.0
    if len(left) >= 5 and len(right) >= 5 and (left.startswith(right) or right.startswith(left)):
        return 0.8
    return 0.5 if groups_of(left) & groups_of(right) else 0.0


def names_match(left: Iterable[str], right: Iterable[str]) -> float:
    """How well two names (as stems) mean the same, from 0 to 1: the last words, the nouns, weigh most."""
    first, second = tuple(left), tuple(right)
    if not first or not second:
        return 0.0
    if set(first) == set(second):
        return 1.0
    shared = sum(max(alike(word, other) for other in second) for word in first)
    score = shared / max(len(first), len(second))
    head = alike(first[-1], second[-1])
    return max(score, 0.75 * head) if head else score * 0.6


@lru_cache(maxsize=8192)
def likeness(given: str, name: str) -> float:
    """How likely someone who wrote `given` meant `name`, from 0 to 1: spelling, plurals, and words left out."""
    mine, real = parts(given), parts(name)
    if not mine or not real:
        return 0.0
    if mine == real or "".join(mine) == "".join(real):
        return _signs_alike(given, name)
    mine_stems, real_stems = [stem(word) for word in mine], [stem(word) for word in real]
    if mine_stems == real_stems:
        return 0.97
    spelling = SequenceMatcher(None, " ".join(mine), " ".join(real)).ratio() * 0.95
    hits = sum(max(_word_likeness(word, other) for other in real_stems) for word in mine_stems) / len(mine)
    extra = len(set(mine_stems)) / max(len(mine_stems), len(real_stems))
    # Words left out or a slip in those that are there, not both: "Brook" is no short for "harvest book".
    least = 0.9 if len(mine) < len(real) else 0.75
    covered = hits * (0.75 + 0.2 * extra) if hits >= least else 0.0
    initials = 0.7 if len(real) > 1 and "".join(mine) == "".join(word[0] for word in real) else 0.0
    return max(spelling, covered, initials)


_SIGNED = re.compile(r"(?<=\w)(?:[+#]+|[-−–*])$")


def _signs_alike(given: str, name: str) -> float:
    """How alike two names of the same words are by the sign behind them: "AB+" is no "AB-" and no "AB", which may be
    either."""
    mine, real = (match[0] if (match := _SIGNED.search(text)) else "" for text in (given, name))
    if mine == real or {mine, real} <= {"-", "−", "–"}:
        return 1.0
    return 0.0 if mine else 0.8


def _word_likeness(word: str, other: str) -> float:
    if word == other:
        return 1.0
    if len(word) >= 3 and (other.startswith(word) or (word.startswith(other) and len(other) >= 3)):
        return 0.9
    return SequenceMatcher(None, word, other).ratio()


def closest(given: str, names: Iterable[str], least: float = 0.6) -> str | None:
    """The one of `names` that `given` most likely means; None if none is close, or two are equally so."""
    ranked = sorted(((likeness(given, name), name) for name in dict.fromkeys(names)), reverse=True)
    if not ranked or ranked[0][0] < least:
        return None
    if len(ranked) > 1 and ranked[1][0] > ranked[0][0] - 0.02 and ranked[0][0] < 0.97:
        return None
    return ranked[0][1]
