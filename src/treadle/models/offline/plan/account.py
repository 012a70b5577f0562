"""The account of a clause: what each of its words stands for, and what is left over.

A word is accounted for if it went into an argument or a filter, if one of the tools that are called speaks of it, or if
it is on the stated list of words that change nothing (`grammar.meaning`). What is left over forbids an answer, be it a
negation, a time, a number, or any other word: half of the answers that said first what they left out were wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.models.offline.grammar import meaning
from treadle.models.offline.grammar.degrees import degree_of
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.many import is_own, is_written_large
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, groups_of, is_function_word, is_verb, singular, stem, tokens
from treadle.models.offline.plan.numbers import bound_of
from treadle.models.offline.plan.orders import options_left, ordered_otherwise
from treadle.models.offline.plan.refusals import (
    and_nothing_else,
    done_to_another,
    done_to_many,
    in_other_money,
    of_another_thing,
    of_which_one,
    true_of_all,
)
from treadle.models.offline.plan.senses import Senses
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.ties import PEOPLE
from treadle.models.offline.plan.toolbox import KnownTool

_COMPARING = word_set("most same equal largest biggest higher lower larger smaller greater than more less")
_LARGEST = word_set("largest biggest")
_DIFFERING = word_set("differ differenc discrepanc discrepancy deviat deviation gap mismatch")
# A percent sign, a star that stands for any text, as in 8002*, and what may belong to the name before: "A +".
_SIGNS = re.compile(r"%|(?<=[^\W_])\*(?=[\s,;.?!)]|$)|(?<=\w )[-+#−–](?=\s*(?:$|[?.!,;]))")
# For what, a figure does not tell.
_ENOUGH = re.compile(r"\b(?:enough|sufficient|too (?:many|much|few|little))\b", re.IGNORECASE)
_RELATING = word_set("since than until till before after by from")
_COUNTED = re.compile(r"\bhow many ([\w-]+)", re.IGNORECASE)
# What is asked for: "perimeter" in "What is the perimeter of a square?".
_HEAD = re.compile(
    r"^\W*(?:(?:and|so|then|please) )*(?:(?:what(?:['’]s| is| are| was| were)|"
    r"(?:tell|show|give|get|find|fetch)(?: me)?|calculate|compute)\s+)?"
    r"(?:(?:the|our|my|your|their|his|her|an?)\s+)?(?:[\w-]+\s+){0,2}?([\w-]+)"
    r"(?=\s+(?:of|for|in|on|at|between|with|from|to)\b|\W*$)",
    re.IGNORECASE,
)
# Plain words, but not where they are what is asked for: the value of an order is not the order. What is asked under
# filters has figures whose names a tool need not say.
_WORTH = word_set("value values amount amounts")
_KINDS = word_set("class level tier mode category")
_RATE = re.compile(r"\bper \w+\b", re.IGNORECASE)
_WHO_IS = re.compile(r"\bwho(?:['’]s| is| was| are| were) (?:the |our |my )?(\w+)", re.IGNORECASE)
# "Who do the Bears play next?" asks for whom they do.
_WHOM = re.compile(r"^\W*(?:and |so )?who (?:do|does|did|will)\b", re.IGNORECASE)
_AUXILIARY = re.compile(r"\b(?:do|does|did)\s+(?:the\s+)?$", re.IGNORECASE)
_BEING = word_set("of is are")
_LEADING = word_set("to from with into onto until")
_LEFT_BEHIND = word_set("in at on for from to with by of")
_SUBJECTS = word_set("we i you he she it they")
_NAMING = re.compile(r"\b(?:called|named|titled|entitled|labell?ed)\s+[\"“']?$", re.IGNORECASE)
_SMALL = re.compile(r"\b[a-z]+\s+$")
_SUMS = frozenset({"sum", "total", "overall", "together", "altogether"})


@dataclass(frozen=True, slots=True)
class Left:
    """What nothing accounts for, in the words of the clause.

    Attributes:
        turning: what would make the question another one.
        spare: other words.
        spoken: how many words are accounted for by a tool or an argument.
        apart: what is answered by the figures that it takes, and not worked out from them: that is said first.
    """

    turning: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    spoken: int = 0
    apart: tuple[str, ...] = ()

    @property
    def forbids(self) -> bool:
        """Whether there can be no answer: to a question without these words it would not be one."""
        return bool(self.turning) or bool(self.spare)


def account(clause: Clause, tools: Sequence[KnownTool], used: Sequence[tuple[int, int]]) -> Left:
    """What of `clause` is left over.

    Args:
        clause: the clause.
        tools: the tools that are called for it.
        used: the stretches that went into arguments, filters and comparisons.
    """
    speech = _Speech(tools, clause)
    wording = " ".join(speech.texts).lower()
    turning = _signs(clause, wording, used)
    spare: list[tuple[int, int]] = []
    spoken = 0
    for value in clause.values:
        named = value.kind in ("name", "code")
        if overlaps(value.start, value.end, used) or (named and speech.tells(value.text)):
            spoken += 1
            continue
        strict = speech.filters or speech.change or not named or (speech.codes and meaning.is_code(value.text))
        (turning if strict else spare).append((value.start, value.end))
    senses = Senses(clause, tools, speech.own, speech.told, used)
    turning += senses.turning() + _of_another(clause, tools, used)
    turning += done_to_another(clause, used) + done_to_many(clause, tools, used) if speech.change else []
    spare += senses.spare()
    counted = [match.span(1) for match in (*_COUNTED.finditer(clause.text), *_HEAD.finditer(clause.text))]
    harmless = _harmless(clause, speech, wording, used) + _kinds_of_choices(clause, tools, used)
    for token in clause.tokens:
        span = (token.start, token.end)
        if any(overlaps(*span, [(value.start, value.end)]) for value in clause.values):
            continue
        if (speech.opposes(token) or (span in counted and token.stem in speech.bounds)) and not overlaps(*span, used):
            turning.append(span)
        elif overlaps(*span, used):
            spoken += not meaning.is_idle(token.text)
        elif is_written_large(token) and is_function_word(token.text) and _SMALL.search(clause.text[: token.start]):
            # Who borrowed "It" is another question than who borrowed it.
            turning.append(span)
        elif overlaps(*span, harmless):
            continue
        elif token.low == "more" and "more" in speech.wording and any(end + 1 == token.start for _, end in used):
            # "Ten more clamps", of a tool that orders more.
            spoken += 1
        elif token.low == "s" and not is_own(clause, token):
            # "5 s" is no end of "it's".
            turning.append(span)
        elif speech.accounts(token) or (speech.states and clause.is_yes_or_no and token.low.endswith(("ed", "en"))):
            spoken += not meaning.is_idle(token.text)
        elif (
            not meaning.is_idle(token.text)
            or token.low in meaning.ASKED_FOR
            or (token.low in _WORTH and span in counted and not speech.filters)
        ):
            (turning if speech.turns(token) or token.low in meaning.ASKED_FOR or span in counted else spare).append(
                span
            )
    moved = _main_words(clause, spare, used)
    turning, spare = turning + moved, [span for span in spare if span not in moved]
    texts = [[clause.text[start:end] for start, end in _merged(spans)] for spans in (turning, spare)]
    return Left(tuple(dict.fromkeys(texts[0])), tuple(dict.fromkeys(texts[1])), spoken)


def _of_another(clause: Clause, tools: Sequence[KnownTool], used: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What makes it a question, or an order, of which the tools know another only."""
    found = in_other_money(clause, tools, used) + and_nothing_else(clause, tools, used)
    found += (
        true_of_all(clause, tools, used) + of_which_one(clause, tools, used) + of_another_thing(clause, tools, used)
    )
    return found + ordered_otherwise(clause, tools, used) + options_left(clause, tools, used)


def _harmless(
    clause: Clause, speech: "_Speech", wording: str, used: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The phrases that say nothing beside what is said by the tools, or by what was given to them."""
    degree = degree_of(clause.text)
    found = meaning.harmless_phrases(clause.text)
    found += [degree[0]] if degree is not None and degree[1] & speech.measures else []
    found += [m.span() for m in _RATE.finditer(clause.text) if re.search(rf"\b{m.group().lower()}\b", wording)]
    return found + [m.span() for start, _ in used if (m := _NAMING.search(clause.text[:start])) is not None]


def _kinds_of_choices(
    clause: Clause, tools: Sequence[KnownTool], used: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The words behind a choice that say no more than that it is one: "class" in "first class"."""
    choices = frozenset[str]().union(*(tool.choices for tool in tools))
    pairs = [(before, after) for before, after in pairwise(clause.tokens) if after.low in _KINDS]
    return [
        (after.start, after.end)
        for before, after in pairs
        if before.low in choices and overlaps(before.start, before.end, used)
    ]


def _signs(clause: Clause, wording: str, used: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What makes the question another one by its form: numbers that are none, signs, and phrases that are not the
    tools' own."""
    told = [(value.start, value.end) for value in clause.values]
    turning = [span for span in meaning.garbled_numbers(clause.text) if not _within(span, told)]
    turning += [m.span() for m in _SIGNS.finditer(clause.text) if not overlaps(*m.span(), used)]
    turning += [m.span() for m in _ENOUGH.finditer(clause.text) if not overlaps(*m.span(), used)]
    phrases = [*meaning.turning_phrases(clause.text)]
    phrases = [span for span in phrases if not (clause.text[slice(*span)].lower() == "up to" and "up to" in wording)]
    root = "square root" in wording
    phrases = [span for span in phrases if not (clause.text[slice(*span)].lower() == "out of" and "out of" in wording)]
    phrases = [span for span in phrases if not (root and clause.text[span[0] :].lower().startswith("square root"))]
    return turning + [span for span in phrases if not _covered(span, clause, used)]


def _main_words(
    clause: Clause, spare: Sequence[tuple[int, int]], used: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What of the words left over the answer cannot do without, even if it says so first: the only name, one that is
    joined to what was used, and the verb of the sentence."""
    found = []
    names = [(value.start, value.end) for value in clause.values if value.kind in ("name", "quoted")]
    given = [(value.start, value.end) for value in clause.values if overlaps(value.start, value.end, used)]
    for start, end in spare:
        word, named = clause.text[start:end], (start, end) in names
        before = (*clause.words_before(start, 1), "")[0]
        named_subject = any(clause.text[to:start] == " " and _AUXILIARY.search(clause.text[:at]) for at, to in used)
        subject = before in _SUBJECTS or named_subject
        if not named and meaning.is_idle(word) and not (named_subject and clause.is_yes_or_no):
            continue
        rest = clause.text[end:].strip(" ?.!").lower()
        does = subject and (not rest or rest in _LEFT_BEHIND) and not named
        label = any(clause.text[end:at] == " " for at, _ in given)
        counted = _COUNTED.search(clause.text) is not None and word.endswith(("ed", "en"))
        led = next((each for each in clause.words_before(start, 2) if each not in ("the", "a", "an")), "")
        # "Is tank 3 clean?" is answered by no temperature of it, "Does the fern need water?" by no day.
        whether = clause.is_yes_or_no and (not rest or named_subject) and not named
        alone = named and (start == 0 or not given or before in ("and", "or"))
        if alone or does or whether or label or counted or before in _BEING or led in _LEADING:
            found.append((start, end))
    return found


def _within(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _covered(span: tuple[int, int], clause: Clause, used: Sequence[tuple[int, int]]) -> bool:
    inside = [token for token in clause.tokens if span[0] <= token.start and token.end <= span[1]]
    return all(overlaps(token.start, token.end, used) for token in inside)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches in order; one inside another is dropped."""
    kept: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


class _Speech:
    """What the tools that are called speak of."""

    def __init__(self, tools: Sequence[KnownTool], clause: Clause) -> None:
        self.tools = tools
        self.texts = [tool.spec.description for tool in tools]
        self.leads = {after.start: before.low for before, after in pairwise(clause.tokens)}
        self.differing = any(token.stem in _DIFFERING for token in clause.tokens)
        self.who = [stem(match[1]) for match in _WHO_IS.finditer(clause.text)]
        self.whom = _WHOM.match(clause.text) is not None
        self.change = any(tool.may_change for tool in tools)
        self.filters = any(param.shape in ("filters", "mapping") for tool in tools for param in tool.params)
        # A value that could have been chosen, and was not, is nothing that the tool speaks of.
        chosen = {stem(str(each)) for t in tools for p in t.params for each in p.enum}
        # Where a tool has a choice of codes, such as currencies, one that is not among them is as good as none of them.
        self.codes = any(p.enum and all(meaning.is_code(str(each)) for each in p.enum) for t in tools for p in t.params)
        self.people = {stem(word) for word in PEOPLE}
        self.names = frozenset(word for tool in tools for word in tool.name_stems)
        self.own = frozenset(w for t in tools for w in t.weights if w not in chosen or w in t.told)
        self.own |= {w for t in tools for p in t.params for w in p.stems}
        self.asked = self.own
        # What only the description of an option says is what it could do, and not what a call without it does.
        choices = ("text", "boolean")
        optional = {w for t in tools for p in t.params if p.shape in choices and not p.required for w in p.words}
        optional -= {
            w for t in tools for p in t.params for w in (p.words if p.required or p.shape not in choices else p.stems)
        }
        optional -= {w for t in tools for o in t.outputs for w in o.stems}
        self.own -= optional - frozenset(w for t in tools for w in t.told)
        # A word of a switch is accounted for where it switches, and nowhere else.
        switches = {w for t in tools for p in t.params if p.shape == "boolean" for w in p.stems} - self.names
        switches -= {w for t in tools for p in t.params if p.shape != "boolean" for w in p.stems}
        self.own -= switches - frozenset(w for t in tools for w in t.told)
        # Nor does the opposite of one change nothing: "read" where there is `unread_only`.
        self.opposites = {w.removeprefix("un") for w in switches if w.startswith("un")} | {f"un{w}" for w in switches}
        self.opposites |= {w.removeprefix("non") for w in switches if w.startswith("non")}
        truths = {w for t in tools for p in t.params if p.shape == "boolean" for w in p.stems}
        self.opposites |= {f"un{w}" for w in truths} - {w for t in tools for p in t.params for w in p.stems}
        # Nor is that of a bound: of "hired" in `hired_after` where no day is given.
        bounds = {w for t in tools for p in t.params if not p.required and bound_of(p) for w in p.stems} - self.names
        bounds -= {w for t in tools for p in t.params if p.required or not bound_of(p) for w in p.stems}
        # What something may be at most is no figure that is told: of "flats up to a rent" the rent of none.
        self.bounds = bounds - {w for t in tools for o in t.outputs for w in o.stems}
        self.own -= bounds - frozenset(w for t in tools for w in t.told)
        self.options = {w for t in tools for p in t.params if p.shape == "text" and not p.required for w in p.nouns}
        self.options -= self.names | {w for t in tools for o in t.outputs for w in o.stems}
        self.options -= {w for t in tools for p in t.params if p.required or p.shape != "text" for w in p.nouns}
        taken = {word for tool in tools for param in tool.params for word in param.stems}
        self.measures = frozenset(word for tool in tools for word in tool.told - taken)
        self.measures |= {word for tool in tools for output in tool.outputs for word in output.stems}
        self.wording = {word.low for tool in tools for word in tokens(tool.spec.description)}
        self.compares = bool({"compar", "differ", "differenc"} & self.own)
        self.expression = any(p.is_expression for t in tools for p in t.params)
        self.states = bool({"status", "state", "stat"} & self.own)
        self.told = frozenset(word for tool in tools for word in tool.told)
        self.groups = frozenset(group for tool in tools for word in tool.named for group in groups_of(word))

    def opposes(self, token: Token) -> bool:
        """Whether a word is the opposite of what the tools switch, or asks for many of what an option takes one of."""
        many = token.stem in self.options and singular(token.low) != token.low and token.low not in self.wording
        other_way = not self.accounts(token) and any(stem(word) in self.own for word in meaning.opposites_of(token.low))
        return many or other_way or (token.stem in self.opposites and token.start > 0)

    def accounts(self, token: Token) -> bool:
        """Whether a tool speaks of the word."""
        # "To-do" is the word of `list_todos`.
        low, word = token.low, token.stem if "-" not in token.low else stem(token.low.replace("-", ""))
        if meaning.is_negation(low):
            return False
        if low == "who" and (any(word in self.own for word in self.who) or self.people & self.names):
            return True
        if low == "who" and self.whom and "whom" in self.wording:
            return True
        if low in meaning.ASKED_FOR:
            return token.start > 0 or bool(meaning.ASKED_FOR[low] & self.asked) or low in self.wording
        if self.compares and low in _COMPARING:
            # A comparison tells the largest differences, and is one of all amounts.
            return low not in _LARGEST or self.differing
        if low in meaning.STRUCTURAL:
            return word in self.names
        if self.filters and word in _SUMS:
            return True
        if low in ("today", "now"):
            return bool(self.own & {"current", "today", "date", "time", "now"})
        if self.expression and low in meaning.COMPUTING:
            # What an expression computes is written in it.
            return word in _SUMS
        if low == "off" and groups_of(word) & self.groups:
            # Days off are days of leave, hours off duty no hours on it.
            return True
        if (low in meaning.TIMES and self.relates(token)) or self.may_be(token):
            return False
        if meaning.is_computing(token.text) or low in meaning.TURNING:
            return word in self.told or (word in _SUMS and bool(_SUMS & self.told))
        if low in meaning.UNITS:
            return word in self.own or any(stem(each) in self.own for each in meaning.same_unit(low))
        if word in self.own or groups_of(word) & self.groups:
            return True
        return len(word) >= 5 and any(
            len(own) >= 5 and (own.startswith(word) or word.startswith(own)) for own in self.own
        )

    def relates(self, token: Token) -> bool:
        """Whether the tools name a time only to say since or until when, and the clause does not: of a share's "change
        since yesterday" the price is none of yesterday's."""
        pairs = [(b.low, a.low) for text in self.texts for b, a in pairwise(tokens(text)) if a.low == token.low]
        told = {before for before, _ in pairs}
        return bool(told) and told <= _RELATING and self.leads.get(token.start, "") not in told

    def may_be(self, token: Token) -> bool:
        """Whether the tools say only that something can be done, and the clause that it is: of tools that can be
        borrowed not all are."""
        if not token.low.endswith(("ed", "en")) or token.stem in self.names:
            return False
        pairs = [(b.low, a.low) for text in self.texts for b, a in pairwise(tokens(text)) if a.low == token.low]
        return bool(pairs) and all(before == "be" for before, _ in pairs) and self.leads.get(token.start, "") != "be"

    def tells(self, text: str) -> bool:
        """Whether the words of a name are the tools' own."""
        return all(stem(word) in self.own for word in text.split())

    def turns(self, token: Token) -> bool:
        """Whether a word that nothing accounts for makes the question another one."""
        low = token.low
        if meaning.is_turning(low) or meaning.is_computing(token.text) or low in meaning.UNITS:
            return True
        return self.change or is_verb(token.text) or self.filters
