"""Deciding: how a run goes on with what a post decides of its calls, and says beside it; once."""

import asyncio
from collections.abc import Callable, Iterable, Set
from typing import Final, NamedTuple

from treadle.context.redacting import kept_arguments
from treadle.drivers.calls.change import json_of
from treadle.journal.info import SERVED, told_by
from treadle.journal.redaction import as_kept
from treadle.kernel.events import ApprovalDecided, ResultAwaited
from treadle.kernel.messages import Text, UserMessage
from treadle.kernel.names import escaped
from treadle.result import Pending, fingerprint
from treadle.serve.points import Point, answered
from treadle.serve.posting import Posting
from treadle.serve.protocols.moves import Asked
from treadle.serve.protocols.narrator import Narrator
from treadle.serve.protocols.wire import Decisions, undecided
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.user import User
from treadle.serve.verdicts import Verb, Verdict
from treadle.tools.raised import Redact

_LOOKS: Final = 10
_LOOK: Final = 0.1
"""How often, and after how many seconds each, it is looked whether a run can be spoken to that could not."""

Decide = Callable[[str, tuple[Pending, ...]], Decisions]
"""What a request decides of the calls that a run waits for."""

Names = Callable[[Pending], Iterable[str]]
"""By what names a request answers what a run waits for, or waited for once; none if it does not."""


class Decides(NamedTuple):
    """What a post decides.

    Attributes:
        decide: of what waits.
        names: by what names.
        whole: those names that are no history: all of them hold, or nothing of the post does. One that is decided
            already holds where it was decided so.
        shows: whether the client shows what it is told in place of what it posted, and so may be told what became of
            calls that were decided otherwise, where nothing is left to decide.
    """

    decide: Decide
    names: Names
    whole: Set[str] = frozenset()
    shows: bool = False


async def decided(runs: Runs, user: User, run_id: str, given: Decides) -> Point:
    """Has run `run_id` go on with what was decided, and says from where it is told. Decided before, it is told again.

    Raises:
        Refused: nothing of what was posted fits anything that the run ever waited for, or not all that is to hold.
    """
    await runs.live.settled(run_id)
    found = await runs.views.describe(user, run_id)
    pending = tuple([one.pending for one in found.waits])
    decisions = given.decide(run_id, pending)
    if decisions:
        # What became of calls that were decided before is told too.
        before = await _held_before(runs, user, run_id, given, pending)
        await runs.decide(user, run_id, verdicts(decisions, pending))
        return before or Point(run_id, len(found.events), pending)
    last = await _before(runs, user, run_id, given)
    # Of what is posted as history, too, what was asked last is no history yet.
    newest = set[str]() if last.point is None else _named(given.names, last.point.pending)
    if last.point is None or last.point.number == len(found.events) or not given.whole | newest <= last.told:
        if found.state.stop is not None and found.state.stop.reason == "external_tool":
            raise Refused(
                "conflict",
                "the run has ended with that call, and takes no result of it",
                "An agent that goes on with the result has the tool as external_tool(…, wait=True).",
            )
        raise undecided()
    return last.point


class _Before(NamedTuple):
    """What a run waited for before, of what is named.

    Attributes:
        point: the last pause at which it waited for any of it; None if it never did.
        so: the names of what was decided as it is now.
        told: those of what a post may be told again.
    """

    point: Point | None
    so: Set[str]
    told: Set[str]


async def _before(runs: Runs, user: User, run_id: str, given: Decides) -> _Before:
    narrator, point, ever = Narrator(), None, dict[str, Pending]()
    for number, event in await runs.views.events(user, run_id):
        for move in narrator.hear(event):
            if isinstance(move, Asked) and _named(given.names, move.pending):
                point = Point(run_id, number, move.pending)
                ever |= {one.key: one for one in move.pending}
    decisions = given.decide(run_id, tuple(ever.values()))
    redact = getattr(runs.journal, "redact", None)
    was_said = await _verdicts_of(runs, user, run_id)
    so = set[str]()
    for key, one in ever.items():
        was = was_said.get(key)
        if was is not None and _is_so(was, decisions, one, redact):
            so |= {*given.names(one)}
    decides = decisions.approve.keys() | decisions.deny.keys()
    others = [one for key, one in ever.items() if given.shows or key not in decides]
    return _Before(point, so, so | _named(given.names, others))


def _is_so(was: ApprovalDecided, decisions: Decisions, one: Pending, redact: Redact | None) -> bool:
    """Whether a call was decided as it is now: refused, or allowed with the same arguments."""
    if one.key not in decisions.approve:
        return one.key in decisions.deny and not was.approved
    edited = decisions.approve[one.key]
    try:
        allowed = one.arguments_json if edited is None else json_of(edited)
    except (TypeError, ValueError, RecursionError):
        # No tool takes them, so that nothing was allowed with them.
        return False
    if edited is not None and redact is not None:
        # What it was allowed with is known as the journal has it.
        allowed = kept_arguments(allowed, redact)
    made = one.arguments_json if was.arguments is None else was.arguments
    return was.approved and fingerprint(made) == fingerprint(allowed)


async def _verdicts_of(runs: Runs, user: User, run_id: str) -> dict[str, ApprovalDecided]:
    """What was decided of each call of a run, and of those of the runs below it, by key."""
    narrator, waits, found = Narrator(), dict[str, str](), dict[str, ApprovalDecided]()
    below = dict[str, str]()
    for _, event in await runs.views.events(user, run_id):
        for move in narrator.hear(event):
            if isinstance(move, Asked):
                waits = {one.call_id: one.key for one in move.pending if not one.run_id}
        if isinstance(event, ResultAwaited) and event.run_id:
            below[event.run_id] = escaped(event.call_id)
        if isinstance(event, ApprovalDecided) and escaped(event.call_id) in waits:
            found[waits[escaped(event.call_id)]] = event
    for inner, call in below.items():
        found |= {f"{call}/{key}": event for key, event in (await _verdicts_of(runs, user, inner)).items()}
    return found


async def _held_before(runs: Runs, user: User, run_id: str, given: Decides, pending: Iterable[Pending]) -> Point | None:
    """From where is told what became of what is to hold and does not wait now; None if all of it waits.

    Raises:
        Refused: some of it never waited, or was not decided so.
    """
    left = given.whole - _named(given.names, pending)
    if not left:
        return None
    before = await _before(runs, user, run_id, given._replace(names=lambda one: left & {*given.names(one)}))
    if not left <= before.so:
        raise undecided()
    return before.point


def _named(names: Names, pending: Iterable[Pending]) -> set[str]:
    """What of a request names any of these calls."""
    return {name for one in pending for name in names(one)}


def verdicts(decisions: Decisions, pending: Iterable[Pending]) -> list[Verdict]:
    """What was decided of each call, as `Runs.decide` takes it."""
    found: list[Verdict] = []
    for one in pending:
        call, _, mark = one.key.rpartition("#")
        if one.key in decisions.results:
            found.append(Verdict(call, mark, "result", result=decisions.results[one.key]))
        elif one.key in decisions.deny:
            found.append(Verdict(call, mark, "deny", reason=decisions.deny[one.key]))
        elif one.key in decisions.approve:
            edited = decisions.approve[one.key]
            again: Verb = "again" if one.kind == "interrupted" else "approve"
            found.append(Verdict(call, mark, again if edited is None else "edit", edited))
    return found


async def say(
    runs: Runs, user: User, run_id: str, message: UserMessage, posting: Posting | None, given: Decides
) -> Point:
    """Says something to a run that is under way, or that waits and goes on with it: from where that is answered.

    Args:
        runs: all runs.
        user: who says it.
        run_id: the run.
        message: what is said.
        posting: what names the request that says it, if anything does.
        given: what the same request decides of the calls that the run waits for; it goes on with both.

    Raises:
        Refused: neither is so any more, it is more than text, or not all holds that is to.
    """
    parts = [Text(message.content)] if isinstance(message.content, str) else message.content
    if not all([isinstance(part, Text) for part in parts]):
        raise Refused("conflict", "a run that is under way takes text only", "Send the file when it has ended.")
    text, kept = message.text, as_kept(message, getattr(runs.journal, "redact", None))
    origin = SERVED if posting is None else posting.said
    for look in range(_LOOKS):
        await runs.live.settled(run_id)
        found = await runs.views.describe(user, run_id)
        if posting is not None and posting.run_id is not None:
            # Another server may have been sent the same, and have been faster.
            before = await answered(runs, user, posting, [told_by(found.events)])
            if before is not None:
                return before
        point = Point(run_id, len(found.events), (), kept.text)
        pending = tuple([one.pending for one in found.waits])
        decided = verdicts(given.decide(run_id, pending), pending)
        if given.whole and not (decided or given.shows):
            # What was decided before may have been by the same post, and what it said with it would be said twice.
            raise undecided()
        await _held_before(runs, user, run_id, given, pending)
        if not decided:
            try:
                await runs.say(user, run_id, text, origin, seen=point.number)
                return point
            except Refused as error:
                if error.kind != "conflict":
                    raise
        try:
            if decided:
                await runs.decide(user, run_id, decided, message=text, origin=origin, seen=point.number)
            else:
                await runs.resume(user, run_id, message=text, origin=origin, seen=point.number)
            return point
        except Refused as error:
            # Somebody else may be about to have it go on: then it is said to the run under way.
            if error.kind != "conflict" or look == _LOOKS - 1:
                raise
        await asyncio.sleep(_LOOK)
    raise AssertionError("the last look returns or raises")
