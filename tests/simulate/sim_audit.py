"""The audit: what the outside saw and what the journal holds, held against the promises when a world has come to rest.

`sim_outside.py` has looked at each act as it happened; here is what can only be said at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sim_deployment import Deployment
from sim_others import (
    above_of,
    arguments_are_those_that_were_decided,
    decisions_are_somebody_s,
    forks_do_nothing_again,
    own_from,
    who_watches_sees_what_is_stored,
)
from sim_outside import READS, Entered, top_of
from sim_store import Row
from sim_worlds import WRITES

from treadle.kernel.events import (
    ApprovalDecided,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolMessage, Usage, text_of
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState


def audited(world: Deployment) -> list[str]:
    """All that is wrong with a world that has come to rest, in words; with one that has not, what was seen in it."""
    if world.stage.wrong:
        return world.stage.wrong
    rules = (
        nothing_is_left,
        every_run_ends_once,
        what_has_ended_stays,
        journals_can_be_read,
        writes_happen_once,
        results_are_not_asked_for_again,
        keys_are_the_same,
        results_are_true,
        rules_are_kept,
        limits_are_kept,
        budgets_are_kept,
        deadlines_are_true,
        what_was_said_is_kept,
        what_is_told_is_true,
        runs_pay_for_those_below,
        decisions_are_somebody_s,
        arguments_are_those_that_were_decided,
        who_watches_sees_what_is_stored,
        forks_do_nothing_again,
    )
    for rule in rules:
        for what in rule(world):
            world.stage.blame(what)
    return world.stage.wrong


def nothing_is_left(world: Deployment) -> Iterator[str]:
    """No task, and nothing that nobody heard of."""
    for loop in world.loops:
        if not loop.dead:
            for task in loop.left:
                yield f"{loop.name} is left with a task: {getattr(task.get_coro(), '__qualname__', task)}"
    alive = {process.name for process in world.stage.processes}
    for run_id, (holder, until) in world.leases.leases.items():
        # What a process asked for as it died may come after the end, and what it did not hear of it cannot give back:
        # both run out.
        known = holder.name in alive and (run_id, holder.name) not in world.leases.unheard
        if world.ended(run_id) and until > world.stage.timeline.now and known:
            yield f"{holder.name} still has the lease of {run_id}, which has ended"
    for loop in world.loops:
        for complaint in loop.complaints:
            yield f"{loop.name} has an error that nobody took: {complaint}"


def every_run_ends_once(world: Deployment) -> Iterator[str]:
    """Every run has an end, and one; those that work for another too.

    But for what a process without leases began in the name of a run that it had lost, when it was being ended.
    """
    for run_id, rows in world.store.runs.items():
        ends = [row.number for row in rows[own_from(run_id, rows) :] if isinstance(row.event, RunFinished)]
        if len(ends) > 1:
            yield f"{run_id} ends more than once"
        if not isinstance(rows[0].event, RunStarted):
            yield f"{run_id} does not begin with its beginning"
        if not isinstance(rows[-1].event, (RunFinished, RunPaused)) and not _begun_too_late(world, run_id):
            yield f"{run_id} has no end: its last event is {type(rows[-1].event).__name__}"


def what_has_ended_stays(world: Deployment) -> Iterator[str]:
    """Who asks for a run that has ended adds nothing to it."""
    for run_id, last in world.stops.items():
        if world.store.runs[run_id][-1] is not last and isinstance(last.event, RunFinished):
            yield f"{run_id} was added to after its end"


def journals_can_be_read(world: Deployment) -> Iterator[str]:
    """Events follow one another as the kernel says, and no history is one that a provider would refuse."""
    for run_id, rows in world.store.runs.items():
        state = RunState()
        try:
            for row in rows:
                state = fold(state, row.event)
        except Exception as error:
            yield f"{run_id} cannot be folded: {error}"
            continue
        if state.phase == "finished":
            yield from (f"{run_id} has a history that is not valid: {fault}" for fault in faults(list(state.messages)))


def faults(messages: list[Message]) -> Iterator[str]:
    """What the strictest provider would refuse."""
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if not open_calls or open_calls.pop(0) != message.call_id:
                yield f"result {i} answers nothing, or not in order"
                return
            continue
        if open_calls:
            yield f"a call has no result before message {i}"
            return
        if isinstance(message, SystemMessage) and i:
            yield f"a system message at {i}"
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.calls]
    if open_calls:
        yield "the last calls have no results"


def writes_happen_once(world: Deployment) -> Iterator[str]:
    """A write has its effect once, unless a person said that it is to be made again."""
    effects = Counter(
        f"{top_of(one.entered.run_id)} {one.entered.tool} {one.entered.label}"
        for one in world.outside.effects
        if one.entered.tool in WRITES
    )
    for key, count in effects.items():
        if count > 1 + world.outside.again.get(key, 0):
            yield f"{key} happened {count} times"


def results_are_not_asked_for_again(world: Deployment) -> Iterator[str]:
    """A call that came back is not made again unless a reaction says so; a write in doubt, unless a person does."""
    tools = {(one.run_id, one.step, one.call_id, one.start): one.tool for one in world.outside.entered}
    for run_id, rows in world.store.runs.items():
        before: dict[tuple[int, str], list[Row]] = defaultdict(list)
        for row in rows:
            event: Any = row.event
            if not hasattr(event, "call_id"):
                continue
            call = (event.step, event.call_id)
            if isinstance(event, ToolStarted) and before[call]:
                tool = tools.get((run_id, *call, before[call][0].number), "")
                kinds = {type(one.event) for one in before[call][1:]}
                approved = any(isinstance(one.event, ApprovalDecided) and one.event.approved for one in before[call])
                if ToolFinished in kinds and ToolReacted not in kinds:
                    yield f"{tool} ({event.call_id} of {run_id}) is made again, though its result is recorded"
                elif ToolFinished not in kinds and tool in WRITES and not approved:
                    yield f"{tool} ({event.call_id} of {run_id}) was under way, and is made again unasked"
                before[call].clear()
            if before[call] or isinstance(event, ToolStarted):
                before[call].append(row)


def keys_are_the_same(world: Deployment) -> Iterator[str]:
    """A call has the same idempotency key whenever it is made, and no other has it, nor it with other arguments."""
    keys: dict[Any, set[str]] = defaultdict(set)
    calls: dict[str, set[Any]] = defaultdict(set)
    for one in world.outside.entered:
        call = (one.run_id, one.step, one.call_id, one.other)
        keys[call].add(one.key)
        calls[one.key].add((*call, one.tool, one.label, one.more))
    yield from (f"{call} had the keys {sorted(found)}" for call, found in keys.items() if len(found) > 1)
    yield from (f"key {key} was that of {sorted(found)}" for key, found in calls.items() if len(found) > 1)


def results_are_true(world: Deployment) -> Iterator[str]:
    """What is recorded as a tool's result is what it said, or an error, or what a person said."""
    said = {f"#{one.number}": one.entered for one in world.outside.effects}
    for run_id, rows in world.store.runs.items():
        for row in rows[own_from(run_id, rows) :]:
            event = row.event
            if not isinstance(event, ToolFinished) or event.is_error:
                continue
            text = text_of(event.content)
            mark = text.rpartition(" ")[2]
            if " is done #" not in text:
                continue
            entered = said.get(mark)
            if entered is None or top_of(entered.run_id) != top_of(run_id):
                yield f"{event.call_id} of {run_id} is told as {text!r}, which no tool said"


def rules_are_kept(world: Deployment) -> Iterator[str]:
    """What is denied never runs; what asks runs only when somebody has agreed."""
    nodes = {node.name: node for node in world.world.top.family()}
    for one in world.outside.entered:
        rows = world.store.runs.get(one.run_id, [])
        ruling = any(nodes[name].rules for name in _agents_above(world, one.run_id))
        agreed = any(
            isinstance(row.event, ApprovalDecided) and row.event.approved
            for row in world.outside.on_call(one.run_id, one.step, one.call_id)
            if row.number < one.start
        )
        if rows and ruling and one.tool in ("pay", "send") and not agreed:
            yield f"{one.tool}({one.label}) of {one.run_id} runs, and nobody has agreed"
        if ruling and one.tool == "post" and world.world.draw(one.label, 3) == 0:
            yield f"{one.tool}({one.label}) of {one.run_id} runs, which is denied"


def _agents_above(world: Deployment, run_id: str) -> Iterator[str]:
    while run_id in world.store.runs:
        first: Any = world.store.runs[run_id][0].event
        yield first.agent
        if first.parent is None:
            return
        run_id = first.parent.run_id


def _below(world: Deployment, run_id: str) -> list[str]:
    """The run, and all that work for it."""
    return [one for one in world.store.runs if one == run_id or one.startswith(f"{run_id}.")]


def limits_are_kept(world: Deployment) -> Iterator[str]:
    """No run, with all that work for it, takes more than it may, by the true bill, as far as its journal was told."""
    for run_id, rows in world.store.runs.items():
        first: Any = rows[0].event
        limits, tree = first.limits, _below(world, run_id)
        made = len({_call(one) for one in world.outside.entered if one.run_id in tree and _known(world, one)})
        if limits.tool_calls is not None and made > limits.tool_calls:
            yield f"{run_id} made {made} tool calls of {limits.tool_calls}"
        steps = sum(isinstance(row.event, ModelReplied) for one in tree for row in world.store.runs[one])
        if limits.steps is not None and steps > limits.steps:
            yield f"{run_id} made {steps} steps of {limits.steps}"
        tokens, usd = _billed(world, tree)
        if limits.tokens is not None and tokens > limits.tokens:
            yield f"{run_id} was billed {tokens} tokens of {limits.tokens}"
        if limits.budget is not None and usd > limits.budget:
            yield f"{run_id} was billed {usd} dollars of {limits.budget}"


def _known(world: Deployment, one: Entered) -> bool:
    """Whether anybody can know of a call: a read is begun ahead of a journal that may never hear of it."""
    rows = world.outside.on_call(one.run_id, one.step, one.call_id)
    return one.tool not in READS or any(isinstance(row.event, ToolStarted) for row in rows)


def _call(one: Entered) -> tuple[str, int, str, int]:
    return one.run_id, one.step, one.call_id, one.made


def _billed(world: Deployment, runs: list[str]) -> tuple[int, Decimal]:
    mine = [one for one in world.outside.bills if one.run_id in runs]
    return sum(one.tokens for one in mine), sum((one.usd for one in mine), Decimal(0))


def budgets_are_kept(world: Deployment) -> Iterator[str]:
    """All runs of an agent together take no more than its budget, by the true bill.

    But a budget may not tell of what a process without leases has charged for a run that it had lost.
    """
    for name, budget in world.budgets.items():
        agents = {node.name for node in world.world.top.family() if node.budget is not None and node.purse == name}
        own = [run for run, rows in world.store.runs.items() if getattr(rows[0].event, "agent", "") in agents]
        trees = sorted({below for run in own for below in _below(world, run)})
        tokens, _ = _billed(world, trees)
        balances = [budget.spent()] if budget.per is None else [budget.spent(day) for day in budget.purses()]
        if budget.tokens is not None and tokens > budget.tokens * len(balances):
            yield f"the budget of {name} allows {budget.tokens} tokens, and {tokens} were billed"
        told = sum(one.tokens + one.held_tokens for one in balances)
        known = tokens - sum(one.tokens for one in world.outside.bills if one.stray and one.run_id in trees)
        if told < known or any(one.tokens < 0 or one.held_tokens < 0 for one in balances):
            yield f"of {known} tokens that were billed the budget of {name} tells {balances}"


def deadlines_are_true(world: Deployment) -> Iterator[str]:
    """No run ends by its deadline before its time is up, however its clock is set meanwhile."""
    for run_id, rows in world.store.runs.items():
        state = _folded(rows)
        for row in rows:
            event = row.event
            if state is None or not isinstance(event, RunFinished) or event.stop.reason != "deadline":
                continue
            took, limit = row.at - rows[0].job.began, state.limits.seconds or 0.0
            if took < limit and "." not in run_id:
                yield f"{run_id} ends by its deadline of {limit:g} s after {took:.3f} s"


def what_was_said_is_kept(world: Deployment) -> Iterator[str]:
    """What was said to a run, and taken, stands in its journal."""
    for run_id, text in world.outside.acknowledged:
        rows = world.store.runs.get(run_id, [])
        if not any(isinstance(row.event, MessageAdded) and row.event.message.text == text for row in rows):
            yield f"{run_id} was told {text!r}, and has lost it"


def what_is_told_is_true(world: Deployment) -> Iterator[str]:
    """No model is told that a call was not executed, if it is known to have been, or an agent has worked on it."""
    for run_id, rows in world.store.runs.items():
        state = _folded(rows)
        for step in () if state is None else state.steps:
            for record in step.calls:
                if record.result is None or '"executed":false' not in record.result.text:
                    continue
                below = f"{run_id}.{step.number}.{escaped(record.id)}"
                for one in world.outside.entered:
                    own = (one.run_id, one.step, one.call_id) == (run_id, step.number, record.id) and _known(world, one)
                    if own or one.run_id == below or one.run_id.startswith((f"{below}.", f"{below}+")):
                        yield f"{record.id} of {run_id} is told as not executed, and {one.tool}({one.label}) ran for it"


def runs_pay_for_those_below(world: Deployment) -> Iterator[str]:
    """What a run that has ended tells of its usage covers what those below it tell of theirs.

    But for what a process began in its name after it had lost it: nobody could find that to pay for it.
    """
    for run_id, rows in world.store.runs.items():
        state = _folded(rows)
        if state is None or state.phase != "finished":
            continue
        own, below = Usage(), Usage()
        for one in _below(world, run_id):
            for row in [] if _is_stray(world, one, run_id) else world.store.runs[one]:
                event: Any = row.event
                if isinstance(event, (ModelReplied, ModelFailed)):
                    usage = event.usage or Usage()
                elif isinstance(event, RunResumed) and event.lost is not None:
                    usage = event.lost.usage
                else:
                    continue
                own, below = (own + usage, below) if one == run_id else (own, below + usage)
        told, known = state.usage.total_tokens, own.total_tokens + below.total_tokens
        if told < known:
            yield f"{run_id} tells {told} tokens, and it and those below it took {known}"


def _begun_too_late(world: Deployment, run_id: str) -> bool:
    """Whether a run was begun by who had lost the run above, or one further up, which whoever took it has ended."""
    while world.stage.weather.lease is None and "." in run_id:
        above = above_of(run_id)
        ended = any(isinstance(row.event, RunFinished) for row in world.store.runs[above])
        if ended and _is_stray(world, run_id, above):
            return True
        run_id = above
    return False


def _is_stray(world: Deployment, run_id: str, top: str) -> bool:
    """Whether a run, or one above it as far as `top`, was begun by who had lost the run above, and met by nobody."""
    while run_id != top:
        rows, above = world.store.runs[run_id], above_of(run_id)
        owners = [
            row.job
            for row in world.store.runs[above]
            if row.at < rows[0].at and isinstance(row.event, (RunStarted, RunResumed))
        ]
        if owners[-1:] != [rows[0].job] and {row.job for row in rows} == {rows[0].job}:
            return True
        run_id = above
    return False


def _folded(rows: list[Row]) -> RunState | None:
    try:
        return fold_all([row.event for row in rows])
    except Exception:
        return None  # which is another rule's
