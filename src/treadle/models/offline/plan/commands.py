"""The verbs that command a tool: whether it changes something, as it says or as its name and description do.

Built by `toolbox`, of what a tool is called and described by; `naming` knows the forms.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from treadle.models.offline.grammar.english import (
    CHANGES,
    HANDLING_VERBS,
    LIGHT_VERBS,
    MAKING_VERBS,
    PLAIN_VERBS,
    TELLING_VERBS,
    word_set,
)
from treadle.models.offline.grammar.words import is_function_word, parts, singular
from treadle.models.offline.plan.deeds import is_done_as_well, joined_deeds
from treadle.models.offline.plan.headings import BEHIND_THINGS, is_told
from treadle.models.offline.plan.naming import (
    FIGURES,
    is_a_deed,
    is_a_thing,
    is_called_by_noun,
    is_done_to,
    is_given,
    is_of_a_thing,
    is_of_one,
    is_returned,
    is_set_going,
    is_telling,
    is_told_to,
    names_a_figure,
    says_a_deed,
    told_otherwise,
    verb_behind,
)
from treadle.models.offline.plan.worked_out import is_done_to_a_thing, is_power, is_worked_out

_ONLY_TELLING = PLAIN_VERBS | word_set(
    "list count search calculate compute convert translate estimate compare query explain describe summarize predict "
    "forecast measure multiply add subtract divide sum rank sort validate verify analyze recommend suggest define view "
    "retrieve total average evaluate round solve locate display geocode tokenize lemmatize factorize"
)
# An order by one of these is to tell something, and no other.
_ASKING = _ONLY_TELLING - word_set("add do return").union(*CHANGES)
# "Files a bug", which is called `report_bug`, is what one reports it for.
_REPORTED = (CHANGES[0], CHANGES[5])
# What opens a name by which one only asks, where nothing else is said of the tool.
_TOLD_BY_NAME = (TELLING_VERBS | PLAIN_VERBS) - HANDLING_VERBS
_FINDING = PLAIN_VERBS | word_set("list search count view")
_DETERMINERS = word_set("a an the one this")
_PARTICLES = word_set("back up out off down away")
_DOING = (
    ("check", "out"),
    ("get", "rid"),
    ("check", "in"),
    ("give", "back"),
    ("give", "away"),
    ("give", "up"),
    ("run", "out"),
)
_TURNING = word_set("turn switch")
_ON_OFF = word_set("on off")
_ADDED = word_set(
    "add sum total number integer value figure amount quantity float decimal operand term addend two three several "
    "together return result"
)
_GIVEN = re.compile(r"\b(?:another|new|more|to)\b")


@dataclass(frozen=True)
class Commands:
    """What a tool is called and described by.

    `changes` is what it says of itself, None if nothing; `shapes` are those of its parameters, "expression" for one
    that takes arithmetic, and `takes` the nouns of those that it requires; `also` are the verbs that its description
    joins to the one that opens it.
    """

    name: str
    summary: str
    changes: bool | None
    shapes: tuple[str, ...]
    returns: str
    takes: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()

    @property
    def _begun(self) -> tuple[str, str]:
        """The first two words of its description; "back", and the "on" of "turns on", belong to the verb."""
        words = [*parts(self.summary), "", ""]
        apart = _PARTICLES | {"on"} if singular(words[0]) in _TURNING else _PARTICLES
        return words[0], next(word for word in words[1:] if word not in apart)

    @property
    def _opening(self) -> frozenset[str]:
        """The verb of its description's opening, by which a change is commanded too: "Marks a task as done"."""
        told, article = self._begun
        verb = singular(told)
        plain = (verb in PLAIN_VERBS or verb in TELLING_VERBS) and verb != "give"
        plain = plain or is_function_word(verb)
        if plain or article not in ("a", "an", "the"):
            return frozenset()
        return _TURNING if verb in _TURNING else self.also | {verb}

    @cached_property
    def called(self) -> frozenset[str]:
        """The verbs that the tool itself is called and described by."""
        return self._opening | (self._verbs - self._asking)

    @property
    def _verbs(self) -> frozenset[str]:
        """The verbs of its name: in "place_order" and "make_refund" the second word is one too."""
        first, *rest = parts(self.name) or ("",)
        if behind := verb_behind(self.name, *self._begun):
            return frozenset({behind})
        return frozenset({first, *rest[:1]} if first in LIGHT_VERBS else {first})

    @cached_property
    def _is_called_by_noun(self) -> bool:
        needs = (not self.shapes, not self.takes)
        called = self.changes is None and not self._says_its_name
        return called and is_called_by_noun(self.name, self.summary, self.returns, *needs)

    @property
    def _says_its_name(self) -> bool:
        """Whether its description is nothing but its name: "The barrier"."""
        return parts(self.summary)[:1] == ("the",) and parts(self.summary)[1:] == parts(self.name)

    @cached_property
    def _is_worked_out(self) -> bool:
        well = is_done_as_well(self.name, self.summary, self._begun)
        return self.changes is None and not well and is_worked_out(self.summary, self.returns)

    @property
    def _only_numbers(self) -> bool:
        return bool(self.shapes) and all(shape == "number" for shape in self.shapes)

    @property
    def _speaks_of_numbers(self) -> bool:
        """Whether it names nothing but numbers: "Add two numbers", and not "Add salt to a tank"."""
        said = {word for word in (*parts(self.name), *parts(self.summary)) if len(word) > 1}
        return all(is_function_word(word) or singular(word) in _ADDED for word in said)

    @cached_property
    def change(self) -> frozenset[str] | None:
        """The verbs that command the tool, unless it says that it only tells something; then None."""
        verbs = self._commanding
        if verbs is None and not self._tells:
            first, told = (*parts(self.name), "")[0], singular(self._begun[0])
            verbs = frozenset({first} if is_function_word(told) else {first, told}) - {""}
        # `show_room`, "Opens a room", is not ordered by what only asks to be told.
        return verbs and self.also | (verbs - self._asking or verbs)

    @property
    def _asking(self) -> frozenset[str]:
        """The verb of its name, where that only asks to be told something and its description opens with another."""
        first, verb = (*parts(self.name), "")[0], singular(self._begun[0])
        another = self._begun[1] in _DETERMINERS and first not in (self._begun[0], verb)
        another = another and (first, *parts(self.name)[1:2]) not in _DOING
        asks = first in _ASKING or (first == "report" and not any(verb in group for group in _REPORTED))
        return frozenset({first}) if another and asks else frozenset()

    @property
    def _commanding(self) -> frozenset[str] | None:
        first = (*parts(self.name), "")[0]
        if self.changes is False or self._is_called_by_noun or self._is_worked_out:
            return None
        if self.changes:
            return self._opening.union(self._verbs, *(group for group in CHANGES if self._verbs & group))
        if behind := verb_behind(self.name, *self._begun):
            groups = [group for group in CHANGES if behind in group]
            if behind == "return" and is_returned(self.name, self.summary):
                return frozenset({behind})
            adds = is_done_to(behind, self.summary) and any(shape != "number" for shape in self.shapes)
            return None if behind in _ONLY_TELLING and not adds else self._verbs.union(*groups)
        if first == "give":
            # What is given may be a price or a raise: the description tells.
            told, given = self._begun[0], is_given(self.summary)
            return next((g | {first} for g in CHANGES if singular(told) in g and (given or told != first)), None)
        if first == "return" and parts(self.summary)[:1] not in (("return",), ("returns",)):
            # What is returned may be a book: the description tells.
            return self._opening | {first}
        if first == "return" and is_returned(self.name, self.summary, self.takes):
            return frozenset({first})
        if is_of_one(first, self.summary) or is_told_to(self.summary, self.takes):
            # Who counts one more does not tell how many there are, nor who lists something for sale what is; and
            # whoever is told something is not whoever asks.
            return frozenset({first})
        if (first, *parts(self.name)[1:2]) in _DOING:
            # What is checked out is not checked.
            return self._opening | {first}
        if (otherwise := told_otherwise(first, self.summary, self._begun)) is not None:
            return otherwise
        if is_done_as_well(self.name, self.summary, self._begun):
            also = joined_deeds(self.name, self.summary)
            # Who is to find something has not ordered what `find_and_delete` does.
            return also if also and first in _FINDING else frozenset({first, singular(self._begun[0])})
        if first in PLAIN_VERBS or (len(parts(self.name)) == 1 and "expression" in self.shapes):
            return None
        adds = first == "add" and len(self.shapes) >= 2 and self._only_numbers and self._speaks_of_numbers
        groups = [group for group in CHANGES if self._verbs & group]
        if not groups and first.isalpha():
            deed = frozenset({first}) if is_a_deed(self.name, self.summary, self.takes) else None
            return self._told_change(first) or deed
        return self._opening.union(self._verbs, *groups) if groups and not adds else None

    def _told_change(self, first: str) -> frozenset[str] | None:
        """The verbs that command a tool whose name opens with no verb of `CHANGES`, by its description's opening."""
        told, article = self._begun
        telling = first in TELLING_VERBS
        if not told or first in (told, singular(told)):
            return None
        verb = told if first.startswith(told) else singular(told)
        if first.removeprefix(verb) in _PARTICLES and article in ("a", "an", "the"):
            # "Rolls a service back", which is called `rollback`.
            return None if verb in PLAIN_VERBS else frozenset({first, verb})
        if singular(told) in _TURNING and not telling and _ON_OFF & {*parts(self.summary)}:
            # "Turn on the lights", which is called `lights_on`.
            return _TURNING
        # "Pays a bill" and "Milks a goat" are no nouns, whatever they are called by; "Creates a report" may be what
        # `reports` tells.
        verb = singular(told)
        done = is_done_to(verb, self.summary) or is_set_going(verb, self.summary)
        plural = singular(first) != first and verb in MAKING_VERBS | TELLING_VERBS | PLAIN_VERBS
        if (plural and not done) or article not in ("a", "an", "the", "one", "this"):
            return None
        # "Enrols a member", which is called `join`; but `orders` may be "orders of a customer", and what summarizes
        # "creates a summary".
        group = next((group for group in CHANGES if verb in group), frozenset({verb}))
        if verb == "give" and not telling and _GIVEN.search(self.summary):
            # "Gives a server another amount", which is called `scale`.
            return frozenset({first})
        if is_done_to(verb, self.summary) and (verb == "put" or not telling):
            # "Adds a comment to a ticket", which is called `comment`; but not what adds a number to another.
            return None if self._only_numbers and verb in ("add", "raise") else group | {first}
        tells = verb in TELLING_VERBS or verb in PLAIN_VERBS
        tells = tells or (telling and verb in MAKING_VERBS and not is_set_going(verb, self.summary))
        known = not telling or any(verb in group for group in CHANGES)
        # The status that silences an alarm is no order of its own.
        named = frozenset[str]() if parts(self.name)[-1] in FIGURES else frozenset({first})
        return group | named if group and known and not tells else None

    @cached_property
    def is_a_thing(self) -> bool:
        """Whether nothing is said of it but its name, and that is nothing but what one asks for: "Recipe for a dish"
        of `recipe`."""
        said, words = parts(self.summary), parts(self.name)
        alone = (
            not said
            or self._says_its_name
            or (said[: len(words)] == words and {*said[len(words) :][:1]} <= BEHIND_THINGS)
        )
        return alone and is_a_thing(self.name, self.shapes, self.returns, self.takes)

    @cached_property
    def _tells(self) -> bool:
        """Whether it says that it only tells something, by its name or, in English, by its description."""
        first = (*parts(self.name), "")[0]
        if self.changes is not None:
            return not self.changes
        if self._is_called_by_noun or self.is_a_thing or self._is_worked_out:
            return True
        if first in _ONLY_TELLING or is_power(first, self.shapes, self.takes):
            return not is_done_to_a_thing(self.name, self.summary, self.shapes)
        said, last = parts(self.summary), parts(self.name)[-1]
        if not said or self._says_its_name:
            return first in _TOLD_BY_NAME or (is_function_word(first) and first != "like")
        # "Patients to be loaded" says nothing of what `load_patient` does.
        heads = self._begun[1] not in _DETERMINERS | {"and", "or"}
        handled = first in HANDLING_VERBS and not names_a_figure(last) and heads
        # "Honey harvested in a year", "Tide at a port" with a number; but "Comment on a post" may be one's own.
        thing = self.returns in ("number", "integer", "array") and is_of_a_thing(self.name, self.summary)
        thing = thing or self._begun[1].endswith("ed")
        named = singular(said[0]) == first.rstrip("0123456789") and not thing
        does = named or says_a_deed(said) or (handled and not is_telling(said))
        return not does and is_told(said, self.returns)
