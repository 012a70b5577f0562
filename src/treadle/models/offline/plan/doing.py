"""Who does what to whom, as a clause says it and as the tools tell it; and what all rules of `senses` look at.

"Who does Sara manage?" has no word that a tool that tells managers does not speak of. Called by `senses`.
"""

import itertools
from collections.abc import Iterator, Sequence

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, alike, is_function_word, parts, stem, tokens
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

Span = tuple[int, int]

AUXILIARIES = word_set("do does did will would can could should shall must may might")
_DOES_TOO = word_set(
    "host captain judge coach guide pilot chair head lead mentor tutor guard nurse cook referee sponsor author"
)
_DOING = word_set("get come go run work make give happen keep carry follow help use find show")


class Spoken:
    """A clause, and what the tools that are called for it speak of.

    Args:
        clause: the clause.
        tools: the tools.
        own: the stems that the tools speak of, and `told` those of their names and descriptions.
        used: the stretches that went into arguments.
    """

    def __init__(
        self,
        clause: Clause,
        tools: Sequence[KnownTool],
        own: frozenset[str],
        told: frozenset[str],
        used: Sequence[Span],
    ) -> None:
        self.clause, self.tools, self.own, self.told, self.used = clause, tools, own, told, used
        self.tokens = clause.tokens
        self.used_values = [value for value in clause.values if overlaps(value.start, value.end, used)]
        self.takes = {word for tool in tools for param in tool.params for word in param.nouns}
        self.text = " ".join(tool.spec.description for tool in tools)
        self.wording = {word.low for word in tokens(self.text)}
        self.wording |= {word for tool in tools for word in parts(tool.name)}
        self.wording |= {word for tool in tools for output in tool.outputs for word in parts(output.name)}

    def _is_used(self, token: Token | None) -> bool:
        return token is not None and overlaps(token.start, token.end, self.used)

    def _filtered(self) -> bool:
        return any(param.shape in ("filters", "mapping") for tool in self.tools for param in tool.params)

    def _is_value(self, token: Token) -> bool:
        return any(value.start < token.end and token.start < value.end for value in self.clause.values)

    def _after(self, token: Token) -> Token | None:
        return next((other for other in self.tokens if other.start >= token.end), None)

    def _before(self, token: Token) -> Token | None:
        return next((other for other in reversed(self.tokens) if other.end <= token.start), None)

    def _names(self) -> set[str]:
        return {word for tool in self.tools for word in tool.name_stems}

    def _has_before(self, token: Token | None, words: frozenset[str]) -> bool:
        """Whether one of `words` stands before a token and what belongs to it."""
        start = token.start if token is not None else 0
        near = [each for each in self.tokens if each.end <= start and not self._is_used(each)][-1:]
        return any(each.low in words for each in near)

    def _is_value_used(self, token: Token | None) -> bool:
        return token is not None and self._is_used(token) and self._is_value(token)


class Doing(Spoken):
    """Where a clause and the tools differ in who does it."""

    def _turned_round(self) -> Iterator[Span]:
        """Where an argument is the one who does what the tools tell the doer of: "Who does Sara manage?", "Whose
        manager is Sara?", "Who is managed by Sara?" and "Who has Sara as a manager?" for a tool that tells managers."""
        verbs = {stem(word) for tool in self.tools if tool.change for word in tool.called}
        doers = {word for word in self.own - self.takes - verbs if word.endswith(("er", "or"))}
        for token in self.tokens:
            after, before = self._after(token), self._before(token)
            does = any(f"{token.stem}{ending}" in doers for ending in ("er", "or", "r"))
            does = does or (token.low in _DOES_TOO and token.stem in self.own - verbs)
            by = after is not None and after.low == "by"
            named = self._is_value_used(before) and not by
            if does and (named or (self._is_used(before) and self._has_before(before, AUXILIARIES))):
                yield token.start, token.end
            elif does and after is not None and by and self._is_used(self._after(after)):
                yield token.start, after.end
            elif token.stem in doers and self._is_reversed(token, before, after):
                yield token.start, token.end

    def _is_reversed(self, doer: Token, before: Token | None, after: Token | None) -> bool:
        """Whether the clause calls the argument the doer: "as a manager", "manager of whom", "whose manager is"."""
        while before is not None and before.low in ("a", "an", "the", "their", "his", "her", "its"):
            before = self._before(before)
        if before is not None and before.low == "whose":
            return after is None or after.low in ("is", "was")
        if after is not None and any(
            v.kind == "name" and v.start == after.start == doer.end + 1 for v in self.used_values
        ):
            return True
        if before is not None and before.low == "as":
            return True
        of = after is not None and after.low in ("of", "for")
        behind = self._after(after) if after is not None else None
        return of and (behind is None or behind.low in ("who", "whom", "which", "what"))

    def _chosen_by_somebody(self) -> Iterator[Span]:
        """A choice, or what was done to an argument, that the clause says somebody did: "tickets closed by Dana" is not
        which closed ones are hers, and "assigned by Dana" not which are assigned to her."""
        chosen = {stem(str(each)) for tool in self.tools for param in tool.params for each in param.enum}
        for token in self.tokens:
            after, before = self._after(token), self._before(token)
            takes = any(noun in (f"{token.stem}e", f"{token.stem}ee") for noun in self.takes)
            if not takes and not (token.stem in chosen and self._is_used(token)):
                continue
            if after is not None and after.low == "by" and self._is_value_used(self._after(after)):
                yield token.start, after.end
            elif self._is_value_used(before) and self._has_before(before, word_set("did has have had that which")):
                yield token.start, token.end

    def _done_the_other_way(self) -> Iterator[Span]:
        """A verb of which an argument is the doer where the tools tell who does it, or the other way round: "What did
        Herbert write?" for a tool that tells "who wrote a book"."""
        said = list(itertools.pairwise(tokens(self.text)))
        for token in self.tokens:
            before, after = self._before(token), self._after(token)
            if self._is_used(token) or is_function_word(token.text):
                continue
            if self._is_value_used(before) and self._has_before(before, AUXILIARIES):
                turned = any(b.low == "who" and alike(a.stem, token.stem) for b, a in said)
            else:
                turned = (
                    before is not None
                    and before.low == "who"
                    and self._is_value_used(after)
                    and any(b.stem in self.takes and alike(a.stem, token.stem) for b, a in said)
                )
            if turned:
                yield token.start, token.end

    def _got(self) -> Iterator[Span]:
        """What somebody named gets or goes to is not what there is of it: "How many days does Jo get?"."""
        for place, token in enumerate(self.tokens):
            if token.low not in _DOING or self._is_used(token) or token.stem in self.told or not place:
                continue
            subject, after = self.tokens[place - 1], self._after(token)
            if after is not None and after.low in ("in", "at", "for", "on", "with", "from"):
                # "Which department does Jo work in?"
                continue
            if self._is_value_used(subject) and self._has_before(subject, AUXILIARIES):
                yield token.start, token.end
