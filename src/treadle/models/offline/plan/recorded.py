"""A question as one to the records that a tool tells of, and whether the one before was answered with all of them.

Called by `model` and `followup`.
"""

from treadle.models.offline.grammar.question import split_clauses
from treadle.models.offline.plan.outcome import Plan
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.records import of_records
from treadle.models.offline.plan.transcript import Turn


def plan_of_records(planner: Planner, question: str, fresh: bool) -> Plan | None:
    """What the records that a tool tells of say to `question`, or the call for them; None if there is neither.

    Args:
        planner: plans for the turn.
        question: what was asked.
        fresh: whether nothing else can be planned, so that a call is worth it.
    """
    clauses = split_clauses(question)
    if len(clauses) != 1:
        return None
    clause = planner.box.read(clauses[0], planner.today)
    found = of_records(clause, planner.box, planner.vocabulary, planner.exchanges, fresh)
    return Plan([found], []) if found is not None else None


def told_all(planner: Planner, turn: Turn) -> bool:
    """Whether a turn's question was answered with all that a tool told, and not with some of it, or not at all."""
    then = Planner(planner.box, [turn], planner.today)
    some = plan_of_records(then, turn.question, False)
    return some is None and any(outcome.done for outcome in then.plan(turn.question).outcomes)
