"""What of a clause may fill a parameter: values still to be had, names known to be valid, how both are written.

Called by `arguments`, which hands them out.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from treadle.models.offline.grammar.currencies import CURRENCIES, currency_of, money_in
from treadle.models.offline.grammar.english import (
    PERSON_WORDS,
    PLACE_WORDS,
    PLURAL_ONLY,
    TITLE_WORDS,
    word_set,
)
from treadle.models.offline.grammar.question import Clause, Value, phrases
from treadle.models.offline.grammar.words import groups_of, is_function_word, is_verb, likeness, singular, stem
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.addresses import receives, tells_address
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import overlaps, plain_number, value_text
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox, tells_it
from treadle.models.offline.plan.vocabulary import Vocabulary

_AND = re.compile(r"^\s*(?:,(?=\s)|and|or|&|,\s*(?:and|or))\s*(?:the |our |in |for |of |an? )?\s*$")

_LEADS = word_set("in at of for from to near on")

_ASKED = re.compile(r"\b(?:(?:how (?:many|much)|what|which)|have (?:an? |any )?)\s*$", re.IGNORECASE)
_ASKED_OF = re.compile(r"\b(?:how (?:many|much)|what|which)(?:(?:['’]s| is| are| was| were) the)?\s+$", re.IGNORECASE)
_OF_ANOTHER = re.compile(r"\s+(?:does|do|did|has|have|of|is|are)\s+(?:(?:the|our|my)\s+)?", re.IGNORECASE)
_WHOSE = ("'s", "’s", "s'", "s’")


class Candidates:
    """The values and names that a clause has for a tool, less those that its filling `out` has used."""

    def __init__(self, tool: KnownTool, clause: Clause, vocabulary: Vocabulary, box: Toolbox, out: Filling) -> None:
        self.tool = tool
        self.clause = clause
        self.vocabulary = vocabulary
        self.box = box
        self.out = out

    def is_own(self, value: Value) -> bool:
        """Whether a phrase, or what is in capitals, is made of the words that the tool describes itself with."""
        plain = value.kind == "phrase" or (value.kind in ("name", "code") and value.text.isupper())
        return plain and all(self.tool.weights.get(stem(word), 0.0) >= 1.0 for word in value.text.split())

    def is_named_otherwise(self, param: Param, wanted: Sequence[Param]) -> bool:
        """Whether there are names and codes enough for what the tool wants, so that mere words are none: "the greens in
        Harbour" gives one district."""
        money = [(start - 1, end) for start, end, _ in money_in(self.clause.text)]
        named = [
            value
            for value in self.values(param)
            if value.kind in ("name", "code", "quoted")
            and not overlaps(value.start, value.end + 1, money)
            and self._led_by(value) in _LEADS
            and fits.affinity(param, value, self.clause) >= 0.5
        ]
        return bool(named) and len(named) >= len(wanted)

    def is_mere(self, param: Param, value: Value, wanted: Sequence[Param]) -> bool:
        """Whether words are no name where others are: those that names and codes leave nothing to take, and those that
        say what is asked for of what has a name, as the frames of "How many frames does Berta have?"."""
        if value.kind != "phrase":
            return False
        named = [v for v in self.values(param) if v.kind in ("name", "code", "quoted")]
        named = [each for each in named if fits.affinity(param, each, self.clause) >= 0.5]
        before = self.clause.text[: value.start]
        if not self.tool.may_change and self._is_asked_of(value):
            return True
        asked = _ASKED.search(before) is not None or (not self.tool.may_change and before.rstrip().endswith(_WHOSE))
        asked = asked and bool(named) and len(named) >= len(wanted)
        return asked or self.is_named_otherwise(param, wanted)

    def _is_asked_of(self, value: Value) -> bool:
        """Whether a word is what is asked of another one, as the replicas of "How many replicas does web have?" and the
        version of "What is the version of web?"."""
        others = phrases(self.clause, self._own_words(), False)
        asked = _ASKED_OF.search(self.clause.text[: value.start]) is not None
        behind = _OF_ANOTHER.match(self.clause.text, value.end)
        return asked and behind is not None and any(each.start == behind.end() for each in others)

    def is_of_a_kind(self, param: Param, value: Value) -> bool:
        """Whether a word says of what kind the things are that a tool tells of, where it takes several texts that may
        be left out: "Polish books" are none of that title."""
        texts = [p for p in self.tool.params if p.shape == "text" and p.name not in self.out.arguments]
        options = [p for p in texts if not p.required and not p.enum and not fits.is_date(p)]
        after = next((token for token in self.clause.tokens if token.start >= value.end), None)
        if after is None or len(options) < 2 or param not in options:
            return False
        return self.clause.text[value.end : after.start] == " " and after.stem in self.tool.name_stems

    def _led_by(self, value: Value) -> str:
        """The word before a value, or before its article."""
        words = self.clause.words_before(value.start, 2)
        return next((word for word in words if word not in ("the", "a", "an")), "")

    def told_elsewhere(self, param: Param) -> bool:
        """Whether the parameter is an identifier, or an address, that another tool finds for what is called
        otherwise."""
        others = [tool for tool in self.box.tools if tool is not self.tool]
        if receives(param) and {stem("email"), stem("mail")} & set(self.tool.name_stems):
            return any(tells_address(tool) for tool in others)
        return param.stems[-1:] == ("id",) and any(
            tells_it(tool, param)
            or (
                any(output.stems == param.stems for output in tool.outputs)
                and param.name not in [other.name for other in tool.params]
            )
            for tool in others
        )

    def coordinated(self, first: Value, values: Sequence[Value]) -> list[Value]:
        """The values that "and", "or" or a comma join to the first."""
        run = [first]
        if self.clause.words_before(first.start, 1) == ("between",) and first.kind in ("number", "period"):
            return []
        for value in sorted(values, key=lambda value: value.start):
            gap = self.clause.text[run[-1].end : value.start] if value.start >= run[-1].end else ""
            if "or" in gap.split() and self.tool.may_change:
                break
            alike = all((value.kind == kind) == (first.kind == kind) for kind in ("number", "period", "time", "email"))
            if self.tool.may_change:
                # "Cancel R-2 and refund it" names one thing.
                alike = alike and (value.kind == "phrase") == (first.kind == "phrase")
            if alike and value.start >= run[-1].end and _AND.match(self.clause.text[run[-1].end : value.start]):
                run.append(value)
        mere = len(run) == 2 and self.clause.text[run[0].end : run[1].start].strip() == ","
        # "Paris, Texas" is one place, as nothing says "and".
        return [] if mere and run[0].kind == "name" else run[1:]

    def values(self, param: Param) -> list[Value]:
        """The values still to be had, noun phrases of the clause among them."""
        everything = self._numbered()
        if param.shape != "number":
            found = self.phrases(param) or phrases(self.clause, self._own_words(), fits.is_unit(param))
            # Of "Deploy billing 2.4.2" both are wanted.
            versions = any(fits.is_version(each) for each in self.tool.required)
            everything += [value for value in found if versions or not self._is_label(value)]
        return [value for value in everything if not overlaps(value.start, value.end, self.out.used)]

    def _numbered(self) -> list[Value]:
        """The values of the clause; a name and the number right behind it are one, as "Van 2", where the tool takes no
        number, or the clause has another for each that it takes."""
        values = list(self.clause.values)
        if any(param.shape not in ("text", "number") or param.enum for param in self.tool.params if param.required):
            return values
        numbers = sum(value.kind == "number" for value in values)
        taken = sum(param.shape == "number" for param in self.tool.params)
        for name, number in pairwise(self.clause.values):
            joined = self.clause.text[name.end : number.start] == " " and re.fullmatch(r"\d{1,3}", number.text)
            after = self.clause.words_after(number.end, 1)
            ends = not after or (after[0] != "of" and is_function_word(after[0])) or is_verb(after[0])
            written = self.clause.text[name.start : number.end]
            kinds = ("name",) if taken or self.tool.change is None else ("name", "code")
            spare = numbers > taken and name.kind in kinds and number.kind == "number"
            spare = spare and all(self._is_measured(v) for v in values if taken and v.kind == "number" and v != number)
            if spare and joined and ends and written.endswith(number.text):
                numbers -= 1
                values = [value for value in values if value not in (name, number)]
                values.append(Value(written, "code", name.start, number.end))
        return sorted(values, key=lambda value: value.start)

    def _is_measured(self, number: Value) -> bool:
        """Whether a word beside a number says what it is of a parameter's: "2.5 hours", "floor 2"."""
        beside = {
            stem(w) for w in (*self.clause.words_before(number.start, 1), *self.clause.words_after(number.end, 1))
        }
        return any(beside & param.words for param in self.tool.params if param.shape == "number")

    def phrases(self, param: Param) -> tuple[Value, ...]:
        """The noun phrases that no tool has a word of."""
        return phrases(self.clause, self.asking(param), fits.is_unit(param))

    def _is_label(self, phrase: Value) -> bool:
        """Whether words only say what is called so right behind them: "parcel" in "parcel 1Z-884"."""
        return any(
            value.kind in ("code", "quoted", "email") and self.clause.text[phrase.end : value.start] == " "
            for value in self.clause.values
        )

    def asking(self, param: Param) -> frozenset[str]:
        """The clause's words that ask for something, and so are no values: the tools' own words and their like."""
        named = {word for tool in self.box.tools for word in tool.name_stems}
        named |= {word for tool in self.box.tools for other in tool.params for word in other.nouns}
        named |= {word for output in self.tool.outputs for word in output.stems}
        said = {token.stem for token in self.clause.tokens}
        if fits.is_currency(param):
            return frozenset(word for word in said if word not in CURRENCIES)
        return frozenset(word for word in said if word in named or groups_of(word))

    def _own_words(self) -> frozenset[str]:
        own = {word for tool in self.box.tools for word in tool.name_stems}
        own |= {word for param in self.tool.params for word in param.nouns}
        own |= {word for output in self.tool.outputs for word in output.stems}
        said = {token.stem for token in self.clause.tokens}
        return frozenset(own | {word for word in said if groups_of(word) & {g for o in own for g in groups_of(o)}})

    def names(self, param: Param) -> tuple[str, ...]:
        """The names that the parameter is known to take; none if nobody told."""
        if param.shape != "text" or (param.stems[-1:] == ("id",) and not param.enum):
            return ()
        return tuple(str(value) for value in param.enum) or self.vocabulary.names(param.nouns, self.owners())

    def render(self, param: Param, value: Value) -> Any:
        """The value as the parameter takes it."""
        if param.shape == "number":
            return plain_number(value.text)
        if value.period is not None:
            return value_text(value, self.vocabulary.months_in_digits and value.period.day is None)
        if fits.is_zone(param):
            return fits.zone_of(value.text) or value.text
        if fits.is_currency(param):
            return currency_of(value.text) or value.text
        if fits.is_weekday(param):
            return singular(value.text)
        example = next((name for name in param.examples if likeness(value.text, name) >= 0.97), None)
        if example is not None:
            return example
        proper = any(stem(word) in param.nouns for word in PLACE_WORDS | PERSON_WORDS | TITLE_WORDS)
        if value.kind != "phrase" or (proper and not value.text.islower()) or fits.is_free_text(param):
            return value.text
        text = value.text if value.start else value.text.lower()
        *first, last = text.split(" ")
        # What is changed must be what was written; what is looked up, tools know by its singular as a rule.
        whole = self.tool.may_change or proper or is_verb(last) or last.lower() in PLURAL_ONLY
        # "The folder docs" is called so, and "Is jobs published?" asks of what is.
        before = self.clause.words_before(value.start, 1)
        whole = whole or before == ("is",) or any(stem(word) in param.nouns for word in before)
        return " ".join([*first, last if whole or last.endswith("ics") else singular(last)])

    def spellings(self, nouns: Sequence[str], names: tuple[str, ...]) -> tuple[str, ...]:
        """The names with their synonyms; none if no names are known."""
        return (*names, *self.vocabulary.synonyms(nouns, names)) if names else ()

    def is_figure_besides(self, name: str, start: int, end: int) -> bool:
        """Whether what "and" adds to a grouping is a figure, as "donors" in "by project and the donors"."""
        added = self.clause.text[start:end].split()
        return added[0].lower() in ("and", ",", "&") and self.vocabulary.is_another(added[-1], name)

    def owners(self) -> list[str]:
        """The names filled so far, whose own names the others are to be."""
        return [value for value in self.out.arguments.values() if isinstance(value, str)]
