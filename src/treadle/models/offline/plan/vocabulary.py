"""Names that the tools have made known: from what they listed and from what their errors said is available.

Read by `arguments`, `structures` and `plan`, to check what a question calls things.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.models.offline.grammar.words import closest, is_verb, likeness, parts, stem
from treadle.models.offline.plan.calendar import Spelling
from treadle.models.offline.plan.toolbox import MARKERS, Toolbox
from treadle.models.offline.plan.transcript import Exchange, hint_of

_NAME_KEYS = ("name", "id", "key", "code", "title", "label")
_DIGIT_MONTH = re.compile(r"(?<!\d)(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?!\d)")
_HYPHEN_MONTH = re.compile(r"(?<!\d)(?:19|20)\d{2}-(?:0[1-9]|1[0-2])(?!\d)|YYYY-MM", re.IGNORECASE)

# Words that are less alike than that are no slips of one another.
_SLIP = 0.6


@dataclass(frozen=True, slots=True)
class Known:
    """A name that is valid: of what kind of thing, and inside which other name it was listed."""

    kind: str
    name: str
    owner: str | None


class Vocabulary:
    """The valid names known so far, by the kind of thing they name (the stem of its noun)."""

    def __init__(self, box: Toolbox, exchanges: Sequence[Exchange]) -> None:
        self._known: dict[Known, None] = {}
        self._synonyms: dict[tuple[str, str], str] = {}
        self._listed: set[str] = set()
        self._about: dict[tuple[str, str], str] = {}
        texts = [tool.spec.description + str(tool.spec.input_schema) for tool in box.tools]
        for exchange in exchanges:
            hint = hint_of(exchange)
            if hint is not None and hint.available:
                self._add(_kind(hint.argument), hint.available, None)
            told = box.named(exchange.tool)
            if not exchange.failed and told is not None and told.lists:
                texts.append(str(exchange.result))
                words = [word for word in parts(exchange.tool) if not is_verb(word)]
                self._learn(exchange.result, stem(words[-1]) if words else "", None)
                self._listed |= {entry.kind for entry in self._known}
        everything = " ".join(texts)
        self.months_in_digits = bool(_DIGIT_MONTH.search(everything) and not _HYPHEN_MONTH.search(everything))

    def names(self, nouns: Iterable[str], owners: Sequence[str] = ()) -> tuple[str, ...]:
        """The names known for the kind of thing that `nouns` (stems) speak of.

        Args:
            nouns: the words for the kind; the last one decides.
            owners: only names listed inside all of these, if they list any.
        """
        kind = ([*nouns] or [""])[-1]
        known = [entry for entry in self._known if entry.kind == kind]
        per_owner = [
            {entry.name for entry in known if entry.owner == owner}
            for owner in owners
            if any(entry.owner == owner for entry in known)
        ]
        names = dict.fromkeys(entry.name for entry in known)
        return tuple(name for name in names if all(name in listed for listed in per_owner))

    def synonyms(self, nouns: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
        """Other words that the tools gave for `names`, for the kind of thing that `nouns` speak of."""
        kind = ([*nouns] or [""])[-1]
        return tuple(word for (of, word), name in self._synonyms.items() if of == kind and name in names)

    def meant(self, nouns: Iterable[str], word: str) -> str:
        """The name that `word` is a synonym of; itself if it is none."""
        return self._synonyms.get((([*nouns] or [""])[-1], word), word)

    @property
    def stems(self) -> frozenset[str]:
        """The words of all names known, as stems."""
        return frozenset(stem(word) for entry in self._known for word in parts(entry.name))

    def is_another(self, written: str, name: str) -> bool:
        """Whether a wording that is like `name` is the very name of something else: "donors" are no "donations"."""
        word = written.lower()
        return word != name.lower() and any(entry.name.lower() == word for entry in self._known)

    def is_listed(self, nouns: Iterable[str]) -> bool:
        """Whether a tool has listed all names of the kind that `nouns` speak of."""
        return ([*nouns] or [""])[-1] in self._listed

    def is_kind(self, word: str) -> bool:
        """Whether the stem is the noun for things whose names are known."""
        return any(entry.kind == word for entry in self._known)

    def spelling(self, name: str, owners: Sequence[str]) -> Spelling:
        """How the field `name` of `owners` writes times, by what was told of it."""
        text = " ".join(told for (field, owner), told in self._about.items() if field == name and owner in owners)
        digits: bool | None = True if _DIGIT_MONTH.search(text) or re.search(r"YYYY[MP]{2}", text) else None
        if digits is None and (_HYPHEN_MONTH.search(text) or self.months_in_digits):
            digits = not _HYPHEN_MONTH.search(text)
        by_days = re.search(r"\b(?:date|timestamp)\b", text) is not None or bool({"date", "day"} & set(parts(name)))
        called = [name, *(word for (_, word), meant in self._synonyms.items() if meant == name)]
        years = any(parts(each)[-1:] == ("year",) for each in called)
        return Spelling(digits, by_days and not {"month", "period"} & set(parts(name)), years)

    def _add(self, kind: str, names: Iterable[str], owner: str | None) -> None:
        for name in names:
            self._known.setdefault(Known(kind, name, owner))

    def _learn(self, value: Any, kind: str, owner: str | None) -> None:
        if isinstance(value, list):
            for item in value:
                if isinstance(item, str):
                    self._add(kind, [item], owner)
                elif isinstance(item, dict):
                    name = next((str(item[key]) for key in _NAME_KEYS if isinstance(item.get(key), str | int)), None)
                    if name is not None:
                        self._add(kind, [name], owner)
                        self._about[name, owner or ""] = f"{item.get('description', '')} {item.get('type', '')}"
                        for word in item.get("synonyms") or item.get("aliases") or ():
                            self._synonyms.setdefault((kind, str(word)), name)
                    self._learn_fields(item, owner if name is None else name)
        elif isinstance(value, dict):
            self._learn_fields(value, owner)

    def _learn_fields(self, value: dict[str, Any], owner: str | None) -> None:
        for key, inner in value.items():
            kind = _kind(key)
            if isinstance(inner, dict) and inner and all(isinstance(item, dict) for item in inner.values()):
                self._add(kind, inner, owner)
                for name, item in inner.items():
                    self._learn_fields(item, name)
            elif isinstance(inner, list | dict):
                self._learn(inner, kind, owner)


def _kind(name: str) -> str:
    words = [word for word in parts(name) if word not in MARKERS and word not in ("id", "name", "names", "ids")]
    return stem(words[-1]) if words else stem(name)


def replacement(given: str, nearest: str | None, available: Sequence[str]) -> str | None:
    """The valid name that someone who wrote `given` most likely meant; None if no one name is likely.

    Args:
        given: what was written.
        nearest: what the tool suggests.
        available: what the tool says is valid.
    """
    exact = next((name for name in available if name.lower() == given.lower()), None)
    if exact is not None:
        return exact
    best = closest(given, available)
    if best is not None and _says_more(given, best):
        # A vegan muffin is no muffin of those that there are.
        return None
    best = best or next((name for name in available if _digits(name) == _digits(given) != ""), None)
    if best is None and nearest is not None and likeness(given, nearest) >= 0.45:
        tied = [name for name in available if name != nearest and likeness(given, name) > likeness(given, nearest)]
        best = None if tied or _says_more(given, nearest) else nearest
    return best


def _says_more(given: str, name: str) -> bool:
    """Whether a word of what was written has nothing like it in a name."""
    words = given.split()
    known = [word for word in re.split(r"[\W_]+", name) if word]
    return len(words) > len(known) and any(
        max((likeness(word, other) for other in known), default=0.0) < _SLIP for word in words
    )


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)
