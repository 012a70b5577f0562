"""Where a result falls short of what was asked: another kind of thing, or some of what it lists, or a list of others.

The rules of `kinds` and `counting`, one after the other. Called by `planner` once there is a result.
"""

from collections.abc import Sequence

from treadle.models.offline.plan.counting import counted_otherwise, not_one_figure, true_of_some
from treadle.models.offline.plan.kinds import (
    done_by_us,
    figure_for_things,
    figure_of_another,
    no_amount_in,
    no_number_of,
    no_such_weather,
    of_another_kind,
    one_of_many,
    rate_of_another,
    said_yes_to_less,
    small_predicate,
    what_was_done,
    who_did_it,
)
from treadle.models.offline.plan.outcome import Outcome
from treadle.models.offline.plan.transcript import Exchange


def falls_short(outcome: Outcome, made: Exchange, spans: Sequence[tuple[int, int]]) -> str | None:
    """The word of a clause for what a result does not have; None if it has all.

    Args:
        outcome: how far the clause has come.
        made: the call and its result.
        spans: the stretches that went into arguments and comparisons.
    """
    clause, result, tools = outcome.clause, made.result, outcome.tools
    given = [value for value in made.arguments.values() if isinstance(value, str)]
    left_out = outcome.left.spare if outcome.left is not None else ()
    span = (
        of_another_kind(clause, result, given)
        or figure_for_things(clause, result, tools)
        or figure_of_another(clause, result, tools)
        or no_amount_in(clause, result)
        or rate_of_another(clause, result, tools)
        or who_did_it(clause, result, given)
        or one_of_many(clause, result)
        or done_by_us(clause, result, tools)
        or small_predicate(clause, result, tools)
        or what_was_done(clause, result, tools)
        or no_number_of(clause, result, tools, spans)
        or no_such_weather(clause, result)
        or said_yes_to_less(clause, result, left_out)
        or true_of_some(clause, result, tools, spans, left_out)
        or not_one_figure(clause, result)
        or counted_otherwise(clause, result, tools, spans)
    )
    return None if span is None else clause.text[slice(*span)]
