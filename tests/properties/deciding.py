"""People who decide on what a generated run waits for: by id or key, in any order, wrongly first, and twice."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from folding import fold_all
from funds import next_funds, with_funds
from journals import masked
from msgspec.structs import replace
from server import NAME, OWN
from texts import FROM_OUTSIDE, WHY_NOT, hostile

from treadle import Misuse, RunResult, ToolResult
from treadle.drivers.unsettled import unsettled
from treadle.kernel.events import ApprovalDecided, ResultAwaited
from treadle.result import fingerprint


async def decide(trial: Any, result: RunResult) -> Any:
    """One round of decisions, by a process of its own; what came of it."""
    way = trial.setup.decides[trial.decided % len(trial.setup.decides)]
    trial.decided += 1
    trial.world.alive += 1
    outcome = await _wrongly(trial, result, way.wrong)
    if outcome is not None:
        return outcome
    waiting = list(reversed(result.pending)) if way.backwards else list(result.pending)
    given: dict[str, dict[str, Any]] = {"approve": {}, "deny": {}, "results": {}}
    decided, edits = [], dict[str, Any]()
    for i, one in enumerate(waiting[:1] if way.partly else waiting):
        how = way.ways[i % len(way.ways)] if one.kind != "result" else "result"
        gone = one.tool in trial.setup.lacking(trial.world) or trial.setup.forgotten(trial.world)
        if how == "edit" and (gone or one.kind == "interrupted"):
            # Arguments that no tool is there to check are refused, and others of a call that may have been done; what
            # is to become of the call can still be said.
            how = "approve"
        name = one.key if way.by_key else one.call_id
        match how:
            case "approve":
                given["approve"][name] = None
            case "edit":
                given["approve"][name] = edits[one.key] = _edited(trial, one, trial.decided + i)
            case "deny":
                given["deny"][name] = hostile(WHY_NOT)
            case _:
                # What fits no form of a server's question is asked for again.
                odd = (i + trial.decided) % 2 == 0
                given["results"][name] = hostile(FROM_OUTSIDE) if odd else {"text": FROM_OUTSIDE}
        if how != "result":
            decided.append(one)
    before = {run: len(trial.journal.events(run)) for run in trial.journal.runs}
    other = {**({} if way.calls is None else {"tool_calls": way.calls}), **dict(way.limits)}
    limits = replace(result.limits, **other) if other else None
    if "tool_calls" in other:
        trial.limited[result.run_id] = len(trial.journal.order)
    # What a queue carries has no room for a conversation, or for budgets of the process that decides.
    queued = way.queued and any(given.values()) and not trial.setup.funds and not trial.lends()
    resumed = trial.resume(result.run_id, queued, limits=limits, message=trial.word(way.says), **given)
    outcome = await trial.caught(resumed)
    if outcome.error is None:
        as_decided(trial, before, decided, edits)
        if way.again:
            await _again(trial, outcome.result, given)
    return outcome


async def settled_at_once(trial: Any, root: str) -> tuple[dict[str, Any], list[Any]]:
    """What a person says of the calls that a process left in flight, and of which calls that is a decision."""
    given: dict[str, dict[str, Any]] = {"approve": {}, "deny": {}, "results": {}}
    decided: list[Any] = []
    state, ways = fold_all(trial.journal.events(root)), trial.setup.settles
    if not ways or state.phase in ("paused", "finished"):
        return {}, []
    for i, one in enumerate(await unsettled(state, trial.journal)):
        how = ways[i % len(ways)]
        # An error is no answer to what a server asks.
        not_so = ("again", "deny", "failed") if one.tool in OWN else ("again", "deny")
        how = "result" if one.kind == "result" and how in not_so else how
        match how:
            case "result":
                given["results"][one.call_id] = hostile(FROM_OUTSIDE)
            case "failed":
                given["results"][one.key] = ToolResult(hostile(FROM_OUTSIDE), is_error=True)
            case "again":
                given["approve"][one.key] = None
            case "deny":
                given["deny"][one.call_id] = hostile(WHY_NOT)
        if how in ("again", "deny"):
            decided.append(one)
    return given, decided


def _edited(trial: Any, one: Any, number: int) -> dict[str, Any]:
    given: dict[str, dict[str, Any]] = {
        "helper": {"task": "look"},
        "pass_on": {"reason": "edited"},
        "activate_skill": {"name": "tight"},
        "read_skill_file": {"skill": "tight", "path": "guide.md"},
    }
    n = (1, 5, 6)[number % 3]
    # A server's schema takes no number that is written as a text.
    return given.get(one.tool, {"n": n if one.tool.startswith(f"{NAME}__") else trial.world.number(n)})


def _other(trial: Any, one: Any) -> dict[str, Any] | None:
    """Arguments that fit the tool of a call, and are not its own; None for one that takes no others here."""
    return next((given for number in range(3) if (given := _edited(trial, one, number)) != one.arguments), None)


async def _wrongly(trial: Any, result: RunResult, wrong: tuple[str, ...]) -> Any:
    """Decisions that fit nothing: each must raise `Misuse` and change nothing. What came of one that did not."""
    for kind in wrong:
        given = _misfit(trial, kind, result)
        if given is None:
            continue
        before = len(trial.journal.order)
        try:
            funds = with_funds(trial, next_funds(trial))
            found = await trial.agent().resume(result.run_id, deps=trial.world, **funds, **given)
        except Misuse:
            if len(trial.journal.order) != before:
                trial.wrong.append(f"a decision that was refused ({kind}) has changed the run")
        except Exception as error:
            # A journal that has failed for good cannot say any more what waits.
            if not trial.heard(error):
                trial.wrong.append(f"a wrong decision ({kind}) raises {error!r}, not Misuse")
            return None
        else:
            trial.wrong.append(f"a wrong decision ({kind}: {given}) is taken, of {result.pending}")
            return await trial.caught(_known(found))
    return None


async def _known(result: RunResult) -> RunResult:
    return result


def _misfit(trial: Any, kind: str, result: RunResult) -> dict[str, Any] | None:
    first = next(iter(result.pending), None)
    if first is None or kind == "nobody":
        return {"approve": ["nobody"]}
    match kind:
        case "fingerprint":
            return {"approve": [f"{first.call_id}#{fingerprint('[9]')}"]} if first.kind != "result" else None
        case "inner":
            return {"deny": [f"{first.call_id}/nobody"]}
        case "two ways":
            return {"approve": [first.call_id], "deny": [first.call_id]}
        case "no JSON":
            return {"results": {first.call_id: object()}}
        case "edit in doubt":
            doubt = [(one.call_id, _other(trial, one)) for one in result.pending if one.kind == "interrupted"]
            return next(({"approve": {call: other}} for call, other in doubt if other is not None), None)
        case "bad edit":
            return {"approve": {first.call_id: {"n": "x", "task": 1, "reason": 1}}} if first.kind != "result" else None
        case _:
            awaited = next((one for one in result.pending if one.kind == "result"), None)
            return None if awaited is None else {"approve": [awaited.call_id]}


async def would_take_over(trial: Any, root: str) -> None:
    """Who would take a run over with what does not fit it is refused; whoever drives it is to go on as before."""
    state = fold_all(trial.journal.events(root))
    waiting = await unsettled(state, trial.journal)
    given: list[dict[str, Any]] = [{"message": 5}, {"approve": ["nobody"]}]
    given += [{"deny": [f"{one.call_id}/nobody"]} for one in waiting]
    edits = [(one.key, _other(trial, one)) for one in waiting if one.kind == "interrupted"]
    given += [{"approve": {key: other}} for key, other in edits if other is not None]
    for one in given:
        funds = with_funds(trial, next_funds(trial))
        try:
            await trial.agent().resume(root, deps=trial.world, takeover=True, **funds, **one)
        except Misuse:
            continue
        except Exception as error:
            if not trial.heard(error):
                trial.wrong.append(f"who would take over with {one} hears {error!r}, not Misuse")
            return
        trial.wrong.append(f"a run is taken over with what does not fit it: {one}")


@asynccontextmanager
async def refused(trial: Any, what: str) -> AsyncIterator[None]:
    """What is done within is refused, and changes nothing; the journal may fail before that."""
    before = len(trial.journal.order)
    try:
        yield
    except Misuse:
        pass
    except Exception as error:
        if not trial.heard(error):
            trial.wrong.append(f"{what} raises {error!r}, not Misuse, though the journal was well")
    else:
        trial.wrong.append(f"{what} is taken without a word")
    if len(trial.journal.order) != before:
        trial.wrong.append(f"{what} has changed something")


async def _again(trial: Any, result: RunResult, given: dict[str, dict[str, Any]]) -> None:
    """The same decisions once more fit nothing any more, unless those very calls wait anew."""
    waiting = {name for one in result.pending for name in (one.call_id, one.key)}
    names = {name for part in given.values() for name in part}
    if not names or names & waiting:
        return
    funds = with_funds(trial, next_funds(trial))
    async with refused(trial, "a repeated decision"):
        await trial.agent().resume(result.run_id, deps=trial.world, **funds, **given)


def as_decided(trial: Any, before: dict[str, int], decided: list[Any], edits: dict[str, Any] | None = None) -> None:
    """What was decided is recorded of the calls that it was decided of, and of no others, with what was edited."""
    hides = trial.journal.redact is not None
    kept = lambda text: masked(text) if text and hides else text  # noqa: E731
    other = {key: kept(msgspec.json.encode(arguments).decode()) for key, arguments in (edits or {}).items()}
    wanted = Counter((one.tool, fingerprint(kept(one.arguments_json)), other.get(one.key)) for one in decided)
    found: Counter[tuple[str, str, str | None]] = Counter()
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        for i in range(before.get(run, len(events)), len(events)):
            event = events[i]
            if not isinstance(event, ApprovalDecided) or event.answer is not None:
                continue
            about = [one for one in events[:i] if getattr(one, "call_id", None) == event.call_id]
            if isinstance(about[-1], ResultAwaited) and about[-1].run_id:
                continue  # passed on to the sub-run that works on the call
            step = fold_all(events[:i]).step
            record = next(one for one in step.calls if one.id == event.call_id) if step is not None else None
            if record is not None:
                found[record.doing.name, fingerprint(record.doing.arguments), event.arguments] += 1
    if wanted != found:
        trial.wrong.append(f"decided were {dict(wanted)}, recorded is {dict(found)}")
