"""What is looked up for a call, and whether the clause speaks of that at all.

Asked by `planner` for every argument that the clause does not give.
"""

from collections.abc import Sequence
from dataclasses import replace

from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.numbers import counts, family
from treadle.models.offline.plan.outcome import Outcome
from treadle.models.offline.plan.results import rows_of
from treadle.models.offline.plan.structures import content_stems, overlaps
from treadle.models.offline.plan.toolbox import KnownTool, Param


def is_said(
    provider: KnownTool, tool: KnownTool, param: Param, found: Outcome, used: Sequence[tuple[int, int]]
) -> bool:
    """Whether a clause speaks of what `provider` tells, and not of what `tool` takes: of "the dry zones", of a name
    on its list. Of "Bake rye" how many loaves are left is not how many to bake, and "Close it" speaks of nothing that
    is closed."""
    verb = next((token for token in found.clause.tokens if token.low == found.clause.opening), None)
    if verb is not None and overlaps(verb.start, verb.end, found.used):
        return False
    listed = [row for _, rows in rows_of(found.done[0].result) for row in rows]
    own = [span for span in found.used if not overlaps(*span, used)]
    if param.shape == "number" and "id" not in param.stems:
        # How much of something a change is to do, no figure tells that nobody named.
        named = {*param.stems, *param.nouns, *provider.name_stems} - {*tool.name_stems}
        # "A metre" is one of them.
        named -= {word for word in named if family(word) is not None}
        if not any(word in named for word in content_stems(found.clause)):
            return False
    same = bool(found.used) and not own and param.shape == "number" and not counts(param)
    words = content_stems(found.clause)
    spoken = bool(own) or any(provider.fit(word) > tool.fit(word) for word in words)
    return spoken or not (same or len(listed) == 1)


def quoted_in(clause: Clause, filling: Filling) -> list[tuple[int, int]]:
    """What a clause quotes for a call."""
    quotes = [(value.start, value.end) for value in clause.values if value.kind == "quoted"]
    return [span for span in quotes if overlaps(*span, filling.used)]


def without(clause: Clause, spans: Sequence[tuple[int, int]]) -> Clause:
    """A clause in which none of the spans is a value."""
    if not spans:
        return clause
    return replace(clause, values=tuple(v for v in clause.values if not overlaps(v.start, v.end, spans)))


def besides(clause: Clause, spans: Sequence[tuple[int, int]]) -> Clause:
    """A clause in which what stands in the spans is not said at all."""
    text = clause.text
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    tokens = tuple(token for token in clause.tokens if not overlaps(token.start, token.end, spans))
    return replace(without(clause, spans), text=text, tokens=tokens)
