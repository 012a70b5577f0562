"""Reading a question: its clauses, the values in them (numbers, codes, names, days, quoted text), their neighbours.

Knows nothing of tools. `arguments` and `plan` read the clauses; `words`, `periods` and `arithmetic` do the fine work.
"""

import re
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Literal

from treadle.models.offline.grammar.adverbs import is_adverb
from treadle.models.offline.grammar.arithmetic import find_arithmetic, is_chain, number_words
from treadle.models.offline.grammar.codes import find_codes, is_letter, is_ordinary
from treadle.models.offline.grammar.courtesies import without_courtesy
from treadle.models.offline.grammar.currencies import CURRENCIES, currency_of
from treadle.models.offline.grammar.english import CHANGES, PLAIN_VERBS, word_set
from treadle.models.offline.grammar.going_on import as_one
from treadle.models.offline.grammar.meaning import UNITS, is_computing, is_turning
from treadle.models.offline.grammar.periods import Period, find_periods
from treadle.models.offline.grammar.quantities import find_large_numbers, find_times
from treadle.models.offline.grammar.reasons import without_reason
from treadle.models.offline.grammar.words import Token, groups_of, is_function_word, is_verb, stem, tokens

Kind = Literal["quoted", "email", "code", "name", "number", "period", "time", "phrase"]


@dataclass(frozen=True, slots=True)
class Value:
    """Something that a question names and that an argument may take.

    Attributes:
        text: as it was written, without quotes.
        kind: what it looks like.
        start: where it starts in the clause.
        end: where it ends.
        period: the day or month, for that kind.

    A time of day is told as HH:MM, a number with a word for thousands or millions in digits.
    """

    text: str
    kind: Kind
    start: int
    end: int
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a question: what can be answered by itself.

    `text` is without the `reason` that stands behind an order: "it is late" of "Cancel order 7 because it is late".
    """

    text: str
    tokens: tuple[Token, ...]
    values: tuple[Value, ...]
    arithmetic: str | None
    reason: str = ""

    def words_before(self, start: int, count: int = 3) -> tuple[str, ...]:
        """The `count` words that end before `start`, nearest first, in lower case."""
        return tuple(islice((token.low for token in reversed(self.tokens) if token.end <= start), count))

    def words_after(self, end: int, count: int = 2) -> tuple[str, ...]:
        """The `count` words that start after `end`, nearest first, in lower case."""
        return tuple(islice((token.low for token in self.tokens if token.start >= end), count))

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it asks for yes or no ("do we have enough …", "is it …")."""
        return _YES_NO.match(self.text) is not None

    @property
    def is_fragment(self) -> bool:
        """Whether it neither asks nor orders anything, as "country DE only." does not."""
        return self.command is None and not self.text.endswith("?") and ASKING.search(self.text) is None

    @property
    def opening(self) -> str:
        """The word that would be the order, if there is one: what is quoted as a whole, or in brackets, is none."""
        match = None if _QUOTING.match(self.text) else _COMMAND.match(self.text.lower())
        return "" if match is None or (self.asks_whether_to and match[1] not in PLAIN_VERBS) else match[1]

    @property
    def asks_whether_to(self) -> bool:
        """Whether what may look like an order ends as a question: "Delete it?", and not "Can you delete it?"."""
        return self.text.rstrip(" !.)").endswith("?") and _ORDERING.match(self.text) is None

    @property
    def command(self) -> str | None:
        """The verb that the clause opens with as an order ("please book …", "I want to cancel …"), if it does."""
        word = self.opening
        known = is_verb(word) or any(word in group or word.removeprefix("re") in group for group in CHANGES)
        return word if word and known else None


# What is quoted, or marked as a comment.
_QUOTING = re.compile(r"\s*(?:[\"'“”‘’„«»`(\[{#<>!]|//|--|/\*)")
_COMMAND = re.compile(
    r"^\W*(?:(?:please|pls|plz|now|then|and|also|so|ok|okay|hey|hi|hello|just|go ahead and|kindly)\W+)*"
    r"(?:(?:can|could|would|will) you (?:please )?|(?:i|we) (?:want|need|would like) (?:you )?to |"
    r"i'd like (?:you )?to |let'?s |help me (?:to )?)?([a-z]+)"
)
_ORDERING = re.compile(r"^\W*(?:[a-z]+\W+){0,3}?(?:can|could|would|will) you\b|.*\b(?:please|pls|plz)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"^\W*(?:and |also |so |then )*(?:do|does|did|is|are|can|could|will|would|has|have|should|was|were)\b"
    r"(?!\s+you\b)|.*,\s*(?:do|does|is|are|can|will|would) ",
    re.IGNORECASE,
)
# A verb with a capital is no verb in the middle of a sentence, but a name: in "Smith, Will" nothing else is asked.
_ASK = (
    "what|what's|how|when|where|who|whose|why|which|(?!(?-i:[A-Z][a-z]))(?:is|are|do|does|did|can|could|will|would|tell|"
    "show|give|list|convert|calculate|compute|check|compare|find|search|look|create|delete|cancel|close|send|get|fetch|"
    "translate|multiply|divide|evaluate|define|open|assign|reserve|renew|has|have)"
)
_DONE_TO = re.compile(
    r"\s+(?:(?:the|an?|all|my|our|your|every|each|both|this|that|these|those|on|off)\b|[\"“'])", re.IGNORECASE
)
_SHORT_UNITS = word_set("kg g mg km m cm mm ml l lb lbs oz ft h hr min sec kwh mwh kw mw t gb mb tb kb")
_LABELS = word_set("id no nr sku po top min max kw tag am pm or and not to for up")
_NAMES_TOO = ("may", "will")
_DOING = ("do", "does", "did")
_DETERMINERS = word_set(
    "whole entire full complete exact precise current present own overall all any each everybody everyone anybody "
    "anyone somebody someone nobody whoever whatever whichever back away called named titled entitled labelled labeled"
)
# A dot behind a title ends no sentence. What parts a question is looked for once in a stretch of blanks, not at each.
_TITLED = "".join(rf"(?<!\b{title}\.)" for title in ("Dr", "Mr", "Mrs", "Ms", "Prof", "St"))
_SENTENCE = re.compile(
    rf"(?<=[?!;])\s+|(?<=[^\W\d]{{2}}\.){_TITLED}\s+(?=[A-Z])|(?<=\d\.)\s+(?=[A-Z])|(?<!\s)(?:\s*\n\s*|\s*+;\s*)"
)
_JOIN = re.compile(
    rf"(?<!\s)(?:\s*+,?\s*+\b(?:and|but|plus)\s+(?:also|then|finally|additionally)\b,?\s*"
    rf"|\s*+,\s*+(?:then|also|and)\s++(?=(?:{_ASK})\b)"
    rf"|\s*+\bas well as\s++(?=(?:{_ASK})\b)|\s*+,\s*+(?=(?:{_ASK})\b)|\s++then\s++(?=(?:{_ASK})\b)"
    rf"|\s++and\s++(?=(?:{_ASK})\b)|\s*+\balso,?\s++(?=(?:{_ASK})\b))",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r"\bbecause\b", re.IGNORECASE)
ASKING = re.compile(rf"\b(?:{_ASK})\b", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)|«([^»]+)»")
_CODE = re.compile(
    r"^(?:[A-Z]{2,}|(?=.*\d)(?=.*[^\W\d_])[\w.-]+|\d+(?:\.\d+){2,}|\w+_\w+|[^\W\d]\w*(?:[.-]\w+)*\d\w*|"
    r"[^\W\d]\w*(?:[+#]+|[-−–*])|[a-z][a-z\d-]+(?:\.[a-z][a-z\d-]+){2,})$"
)
# What letters and a number are together, as a train or a flight is called: "ICE 71". Letters by which a tool calls
# things, and those of money and units, are none of it.
_LETTERED = re.compile(r"(?<![\w.,:-])([A-Z]{2,4}) \d{1,5}(?![\w.,:%-]*\w)(?!\s*[%€$£])")
# Behind the noun for what is called by it: a number, or a code.
_CALLS = re.compile(r" (?=\S*\d)[A-Z0-9]")
_NUMBER = re.compile(r"^\d[\d,]*(?:\.\d+)?$")
_SIGN = re.compile(r"(?:^|[\s($€£])[-−]$")


def split_clauses(text: str) -> tuple[str, ...]:
    """The parts of a question that ask for different things; quoted text is never split."""
    if is_chain(text := without_courtesy(text)):
        return (text.strip(" ,\n\t"),)
    masked = _QUOTED.sub(lambda match: "\x00" * len(match.group()), text)
    pieces = [text[a:b] for one in _spans(masked, _SENTENCE, 0, len(text)) for a, b in _joined(masked, *one)]
    for place in range(len(pieces) - 1, 0, -1):
        if whole := as_one(pieces[place - 1], pieces[place]):
            pieces[place - 1 : place + 1] = [whole]
    return tuple(piece.strip(" ,\n\t") for piece in pieces if re.search(r"\w", piece))


def _spans(masked: str, boundary: re.Pattern[str], start: int, end: int) -> list[tuple[int, int]]:
    spans = []
    for match in boundary.finditer(masked, start, end):
        if match.start() > start and match.end() > match.start():
            spans.append((start, match.start()))
            start = match.end()
    return [*spans, (start, end)]


def _joined(masked: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of a sentence. A reason may go on, as in "because they complain and cancel": no part is behind one."""
    because = _BECAUSE.search(masked, start, end)
    *parts, (last, _) = _spans(masked, _JOIN, start, because.start() if because is not None else end)
    return [*parts, (last, end)]


def read_clause(text: str, today: date | None = None, nouns: frozenset[str] = frozenset()) -> Clause:
    """Reads one clause: its words and the values in it.

    Args:
        text: the clause.
        today: what "today" and "tomorrow" are relative to; without it they are not values.
        nouns: the stems of words that begin no name where only the clause's beginning gives them a capital: in
            "Orders of Nils" the first, for a tool that lists orders.
    """
    if text.isupper() and len(text.split()) > 2:
        text = text.lower()
    text, reason = without_reason(text)
    words = tokens(text)
    found: list[Value] = []

    def add(value: Value) -> None:
        if not any(value.start < other.end and other.start < value.end for other in found):
            found.append(value)

    for match in _QUOTED.finditer(text):
        add(Value(next(group for group in match.groups() if group), "quoted", match.start(), match.end()))
    for start, end in find_codes(text):
        add(Value(text[start:end], "code", start, end))
    for match in _LETTERED.finditer(text):
        letters = match[1].lower()
        if stem(letters) not in nouns and currency_of(letters) is None and letters not in _SHORT_UNITS | _LABELS:
            add(Value(match.group(), "code", match.start(), match.end()))
    for start, end, digits in find_large_numbers(text):
        add(Value(digits, "number", start, end))
    for start, end, moment in find_times(text):
        add(Value(moment, "time", start, end))
    for period in find_periods(text, today):
        add(Value(period.written, "period", period.start, period.end, period))
    for token in words:
        if "@" in token.text or "://" in token.text:
            add(Value(bare := token.text.rstrip("?!.,;:"), "email", token.start, token.start + len(bare)))
        elif _NUMBER.match(token.text):
            signed = _SIGN.search(text[: token.start])
            start = token.start - (1 if signed else 0)
            add(Value(f"-{token.text}" if signed else token.text, "number", start, token.end))
        elif token.text.isupper() and token.stem in nouns and _CALLS.match(text, token.end):
            continue  # "SKU A-100" says what A-100 is.
        elif (
            is_path(token.text)
            or (_CODE.match(token.text) and not is_ordinary(token.text, text[: token.start]))
            or is_letter(token.text, token.start)
        ):
            add(Value(token.text, "code", token.start, token.end))
    for start, end, digits in number_words(text):
        if text[start].isupper() and re.search(r"(?<=\s)[A-Z]\w+ $", text[:start]):
            # "Take Five" is what something is called.
            continue
        add(Value(digits, "number", start, end))
    for start, end in _proper_names(text, words, nouns):
        add(Value(text[start:end], "name", start, end))
    return Clause(text, words, tuple(sorted(found, key=lambda value: value.start)), find_arithmetic(text), reason)


def is_path(text: str) -> bool:
    """Whether the text is written as a path is, or the name of a repository."""
    return "/" in text and "://" not in text and text[:1] in "/abcdefghijklmnopqrstuvwxyz"


def _proper_names(text: str, words: tuple[Token, ...], nouns: frozenset[str]) -> list[tuple[int, int]]:
    """Runs of capitalised words; the first word of a clause only as part of a longer run."""
    spans: list[tuple[int, int]] = []
    place = 0
    while place < len(words):
        last = place
        holding = is_function_word(words[place].text) and words[place].low != "the" and not _is_named(place, words)
        if not _capital(words[place]) or holding:
            place += 1
            continue
        while last + 1 < len(words):
            ahead = 1
            while (
                last + ahead < len(words) and words[last + ahead].low in ("of", "the", "de", "van", "von") and ahead < 3
            ):
                ahead += 1
            joined = last + ahead < len(words) and _capital(words[last + ahead])
            if not joined or not re.fullmatch(r"-|[\w\s.]*", text[words[last].end : words[last + ahead].start]):
                break
            last += ahead
        first = place
        if place == 0 and last > 0 and words[0].low != "the":
            asking = is_verb(words[0].text) or is_function_word(words[0].text) or _changes(words[0].low)
            first = 1 if asking or words[0].stem in nouns else 0
            # "The" with a capital belongs to the name, as in "Cancel The Tempest".
            while first and first < last and words[first].text in ("of", "the"):
                first += 1
        single = last == first
        skip = words[first].low == "the" if single else False
        if not (skip or (single and first == 0) or (single and is_verb(words[first].text) and first == 0)):
            spans.append((words[first].start, words[last].end))
        place = last + 1
    return spans


def _is_named(place: int, words: tuple[Token, ...]) -> bool:
    """Whether a word that may be a verb stands as a name, with a capital among words without: "booked by Will"."""
    return words[place].low in _NAMES_TOO and place > 0 and any(not _capital(token) for token in words[1:])


def _changes(word: str) -> bool:
    """Whether the word commands a change: in "Set Ada Lovelace's salary" it is no part of the name."""
    return any(word in group for group in CHANGES)


def _capital(token: Token) -> bool:
    return token.text[0].isupper()


def phrases(clause: Clause, taken: frozenset[str], units: bool = False) -> tuple[Value, ...]:
    """The noun phrases of a clause that are not values already.

    Args:
        clause: the clause.
        taken: the stems of words that are part of no phrase, beside function words and verbs.
        units: whether what a number counts, as "feet" in "6 feet", may be one.
    """
    runs: list[list[Token]] = [[]]
    for token in clause.tokens:
        if token.low in ("one", "ones") and runs[-1] and not clause.text[runs[-1][-1].end : token.start].strip():
            # "The red one" is called by no name.
            runs[-1] = []
        inside = any(value.start <= token.start < value.end for value in clause.values)
        turns = is_turning(token.text) or is_computing(token.text) or token.low in _DETERMINERS
        verb = is_verb(token.text) and not _is_gerund(clause, token)
        plain = not inside and not turns and not is_function_word(token.text) and not verb
        plain = (
            plain
            and (token.stem not in taken or _is_gerund(clause, token))
            and not _is_degree(clause, token)
            and not _is_done(clause, token, runs[-1])
            and not _is_order(clause, token)
            and not _is_told(clause, token)
            and clause.words_before(token.start, 1) != ("who",)
            and not _is_unit(clause, token, units)
            and not _is_what_one_does(clause, token)
            and not (is_adverb(token.low) and token.start > 0 and _ends(clause, token))
        )
        gap = runs[-1] and clause.text[runs[-1][-1].end : token.start].strip(" ") != ""
        if plain and gap:
            runs.append([])
        if plain:
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    return tuple(
        Value(clause.text[run[0].start : run[-1].end], "phrase", run[0].start, run[-1].end) for run in runs if run
    )


def _is_unit(clause: Clause, token: Token, units: bool) -> bool:
    """Whether a word says what a number before it counts, as "euros" in "20 euros": nothing is called by that."""
    measures = token.low in _SHORT_UNITS or (not units and (token.low in UNITS or token.stem in CURRENCIES))
    numbers = [value for value in clause.values if value.kind == "number" and value.end <= token.start]
    return measures and any(not clause.text[value.end : token.start].strip() for value in numbers)


def _is_what_one_does(clause: Clause, token: Token) -> bool:
    """Whether a word is the verb of what somebody does, as "consume" in "What did the office meter consume in May?"."""
    does = next((each for each in clause.tokens if each.low in _DOING), None)
    after = clause.words_after(token.end, 1)
    if does is None or token.start < does.end or (after and not is_function_word(after[0])):
        return False
    behind = [each for each in clause.tokens if each.start >= does.end and not is_function_word(each.text)]
    return token in behind[1:] and not any(is_verb(each.text) for each in behind)


def _ends(clause: Clause, token: Token) -> bool:
    """Whether no word for a thing stands right behind a word."""
    after = clause.words_after(token.end, 1)
    return not after or is_function_word(after[0]) or after[0][0].isdigit()


def _is_degree(clause: Clause, token: Token) -> bool:
    """Whether a word asks for how much of something there is: "how long"."""
    return clause.words_before(token.start, 1) == ("how",)


def _is_done(clause: Clause, token: Token, run: list[Token]) -> bool:
    """Whether a word says what is done with the thing before it, or how that is: "baked" in "at what heat is a pretzel
    baked?", "healthy" in "Is web healthy?"."""
    after = clause.words_after(token.end, 1)
    ends = not after or is_function_word(after[0])
    being = any(each.low in ("is", "are", "was", "were") and each.end <= token.start for each in clause.tokens)
    done = len(token.low) > 4 and token.low.endswith("ed")
    led = clause.words_before(run[0].start, 1) if run and clause.is_yes_or_no and not after else ()
    return bool(run) and ends and being and (done or (bool(led) and led[0] not in _DETERMINERS | {"a", "an", "there"}))


def _is_gerund(clause: Clause, token: Token) -> bool:
    """Whether what may be a verb is a noun behind a preposition, and all behind it: "from checking to savings"."""
    after, before = clause.words_after(token.end, 1), clause.words_before(token.start, 1)
    ends = not after or is_function_word(after[0])
    led = bool(before) and before[0] in ("from", "into", "to", "in", "of", "for")
    return token.low.endswith("ing") and ends and led


def _is_told(clause: Clause, token: Token) -> bool:
    """Whether a word says what somebody is: "allergic" in "Who is allergic to nuts?"."""
    being = any(each.low in ("is", "are", "was", "were") and each.end <= token.start for each in clause.tokens)
    before = (*clause.words_before(token.start, 1), "")[0]
    told = before in ("is", "are", "was", "were") or not is_function_word(before)
    return being and told and clause.words_after(token.end, 1) == ("to",)


def _is_order(clause: Clause, token: Token) -> bool:
    """Whether a word opens the clause as the verb of an order, as what it is to be done to stands behind it."""
    return token.low == clause.opening and _DONE_TO.match(clause.text, token.end) is not None


def is_plain_noun(word: str, stem: str) -> bool:
    """Whether a word names a thing, rather than asking for something or holding the sentence together."""
    return not is_function_word(word) and not is_verb(word) and not groups_of(stem)
