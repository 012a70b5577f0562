"""What must hold of every run and of those that work for it: invariants, each of which says what broke it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise, zip_longest
from typing import Any, get_args

import msgspec
from biller import MILLION
from checks import requests_valid, same, shape, shape_of, valid
from clock import HOUR
from corrected import notices_name_what_was_made, what_a_person_put_in_place_is_told
from counted import metrics_are_those_of_the_journal
from folding import Known, fold_all
from funds import budgets_given_are_kept, whole_family
from looking_back import a_look_tells_what_came_of_it, looking_back_tells_what_was_spent
from resting import forks_hold
from rules_again import (
    a_key_is_that_of_one_call,
    an_end_by_errors_is_earned,
    what_a_step_was_told_stands_before_its_reply,
    what_began_is_counted,
    what_comes_of_a_call_knows_what_was_said,
)
from rules_of_answers import an_answer_stands_as_it_was_let_pass, what_a_typed_agent_below_gave_is_of_its_type
from rules_of_calls import (
    a_hand_off_comes_last,
    a_hook_that_raises_touches_nobody_else,
    calls_are_started_again_for_a_reason,
    each_call_has_its_own_result,
    hooks_see_what_is_recorded,
    nothing_is_made_too_often,
    nothing_walks_around_the_rules,
    only_what_was_offered_runs,
    results_are_kept,
    timed_out,
    tools_keep_their_manners,
    tools_run_between_start_and_result,
    what_a_server_changes_is_asked_about,
    what_a_tool_finds_out_is_believed,
    what_is_told_is_true,
    what_runs_has_the_arguments_that_were_decided,
    what_runs_is_what_was_judged,
    writes_happen_once,
)
from rules_of_telling import the_veil_hides_and_changes_nothing
from showing import arguments_arrive_as_they_are, what_is_shown_is_what_happened
from skilled import skills_hold
from texts import ASIDE, FROM_OUTSIDE, LONE, QUESTION, REPLACED, shows
from toolbox import Execution
from traced import spans_are_those_of_the_journal
from trial import Trial
from worlds import CONDITIONS, Answer

from treadle.drivers.purse.spending import By, Spending, spending_of
from treadle.journal import UnknownRun
from treadle.journal.redaction import redacted
from treadle.kernel.accounts import Accounts
from treadle.kernel.events import (
    ApprovalDecided,
    ContextEdited,
    Event,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolStarted,
    decode_event,
    encode_event,
)
from treadle.kernel.fold import fold
from treadle.kernel.messages import (
    AssistantMessage,
    Usage,
)
from treadle.kernel.state import RunState
from treadle.kernel.stop import STOP_REASONS, Limits
from treadle.models.bounds import size_of_message

Taken = tuple[int, int, Decimal]
"""Steps, and billed tokens and dollars."""


def requests_are_valid(trial: Trial) -> Iterator[str]:
    """What every model was sent, at the top and below."""
    for _, _, player in trial.world.players:
        requests_valid(player)
    yield from ()


def histories_are_valid(trial: Trial) -> Iterator[str]:
    """The history of every run that has ended can be gone on with, and so can the conversation."""
    for run in trial.journal.runs:
        state = fold_all(trial.journal.events(run))
        if state.phase == "finished":
            valid(list(state.messages))
    result = trial.last.result
    if result is not None:
        valid(result.messages)
    if trial.said is not None:
        valid(trial.said.messages)
        users = [message.text for message in trial.said.messages if message.role == "user"]
        asked = sum(text.replace(LONE, "").strip() == QUESTION for text in users)
        if asked > 1:
            yield f"the question stands {asked} times in the conversation"


def what_is_shown_stands_in_the_history(trial: Trial) -> Iterator[str]:
    """A follow-up is asked with the image or the sound that it is about; nobody but a context policy takes it out."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        if any(isinstance(event, ContextEdited) for event in events):
            continue
        said = list(fold_all(events).messages)
        for event in events:
            if isinstance(event, ModelReplied) and event.message.shown and event.message not in said:
                yield f"{trial.path(run)}: what was shown is not in the history: {event.message}"


def _and_as_stored(states: tuple[RunState, RunState], event: Event) -> tuple[RunState, RunState]:
    one, other = fold(states[0], event), fold(states[1], decode_event(encode_event(event)))
    assert one == other or same(one, other)
    return one, other


_as_stored = Known(_and_as_stored, (RunState(), RunState()))


def the_journal_is_the_truth(trial: Trial) -> Iterator[str]:
    """Every run's events, encoded and decoded, fold to the same state at every prefix; the result has them all."""
    for run in trial.journal.runs:
        one, _ = _as_stored(trial.journal.events(run))
        found = fold_all(trial.journal.events(run))
        assert one == found or same(one, found)
    result = trial.last.result
    root = trial.root
    if result is None or root is None:
        return
    if not trial.journal.failed and root in trial.journal.runs:
        stored = shape_of(fold_all(trial.journal.events(root)))["steps"]
        for had, read in zip_longest(shape(result.steps), stored):
            # What has no reply yet is no step of a result.
            if had != read and (had or read[-1]):
                yield f"the run had a step {had}, and who reads it has {read}"
    # The run under way goes on with what was said.
    told = redacted(root, 0, list(result.events), trial.journal.redact, "")
    if list(told) != trial.journal.events(root):
        yield "the result has other events than the journal"


def time_goes_on(trial: Trial) -> Iterator[str]:
    """However the wall clock is set: the events of a run are in the order of their times, and it takes no hour."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        if any(after.at < one.at for one, after in pairwise(events)):
            yield f"{trial.path(run)}: time runs backwards: {[event.at for event in events]}"
        if fold_all(events).elapsed >= HOUR / 2:
            yield f"{trial.path(run)}: it was under way for {fold_all(events).elapsed} s"


def nothing_is_over_its_bound(trial: Trial) -> Iterator[str]:
    """No reply and no `for_app` is longer than it may be; a reply that is ends its run, and is not asked for again."""
    # What a journal writes in the place of a text may be longer than that.
    most = None if trial.journal.redact is not None else trial.setup.bound
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        for event, after in zip(events, [*events[1:], None], strict=True):
            if isinstance(event, ModelReplied) and most is not None and size_of_message(event.message) > most:
                yield f"{trial.path(run)}: a reply of {size_of_message(event.message)} characters, of {most}"
            if isinstance(event, ToolFinished) and most is not None and len(msgspec.json.encode(event.app)) > most:
                yield f"{trial.path(run)}: {len(msgspec.json.encode(event.app))} bytes for the application, of {most}"
            if isinstance(event, ModelFailed) and event.error.kind == "reply_too_long":
                if trial.setup.bound is None or (most is not None and len(event.text) > most):
                    yield f"{trial.path(run)}: {len(event.text)} characters of a reply that is too long are kept"
                if isinstance(after, (ModelFailed, ModelReplied)):
                    yield f"{trial.path(run)}: a reply that is too long is asked for again"


def every_run_has_one_end(trial: Trial) -> Iterator[str]:
    """One stop reason, from the list, closed in the journal or paused there; sub-runs end with the run above them."""
    root, result = trial.root, trial.last.result
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        finishes = sum(isinstance(event, RunFinished) for event in events)
        reopened = sum(
            isinstance(one, RunFinished) and isinstance(after, (RunResumed, RunForked))
            for one, after in pairwise(events)
        )
        if finishes > 1 + reopened or sum(isinstance(event, RunStarted) for event in events) != 1:
            yield f"{run} begins or ends more than once"
        last = trial.ended(run)
        if last is None:
            yield f"{trial.path(run)} has no end: its last event is {type(events[-1]).__name__}"
        elif run == root and result is not None:
            if result.stop != last.stop or result.stop.reason not in STOP_REASONS:
                yield f"the result says {result.stop}, the journal {last.stop}"
            if result.finished != (result.stop.reason in ("answered", "condition", "external_tool")):
                yield f"finished is {result.finished} at {result.stop.reason}"
            if bool(result.stop.advice) == result.finished:
                yield f"advice {result.stop.advice!r} at {result.stop.reason}"
    if result is not None and (result.stop.reason == "waiting") != isinstance(trial.ended(root or ""), RunPaused):
        yield "a run that waits is not paused"


def limits_are_kept(trial: Trial) -> Iterator[str]:
    """No limit of any run is exceeded by what it and the runs below it did."""
    for run in trial.journal.runs:
        events, tree = trial.journal.events(run), trial.tree(run)
        state = fold_all(events)
        limits, path = state.limits, trial.path(run)
        made = _made(trial.executed(tree))
        # What had begun before the limit was lowered may be made again, where a person agrees to it.
        begun = [one for one in trial.journal.order[: trial.limited.get(trial.above(run)[-1], 0)] if one[0] in tree]
        before = sum(isinstance(event, ToolStarted) for _, event in begun)
        if limits.tool_calls is not None and made > max(limits.tool_calls, before):
            yield f"{path}: {made} tool calls of {limits.tool_calls}{' below' if len(tree) > 1 else ''}"
        for limits, before, after in _under(trial, run):
            for what, most, had, has in zip(
                ("steps", "tokens", "dollars"), (limits.steps, limits.tokens, limits.budget), before, after, strict=True
            ):
                if most is not None and has > max(most, had):
                    yield f"{path}: {has} {what} of {most}, {had} of them before it had that limit"
        yield from _errors_in_a_row(path, state, _taken_up(events))


def _under(trial: Trial, run: str) -> Iterator[tuple[Limits, Taken, Taken]]:
    """The limits that a run was under, one after the other, and what it had taken when they began and ended."""
    tree, order = trial.tree(run), trial.journal.order
    limits, begun = trial.limits_of(run), _taken(trial, tree, 0)
    for at, (whose, event) in enumerate(order):
        if whose == run and isinstance(event, (RunResumed, RunForked)) and event.limits is not None:
            before, begun = begun, _taken(trial, tree, at)
            yield limits, before, begun
            limits = event.limits
    yield limits, begun, _taken(trial, tree, len(order))


def _taken(trial: Trial, tree: Sequence[str], at: int) -> Taken:
    """The steps that these runs had made, and what they were billed, when the journal held so many events."""
    steps = sum(run in tree and isinstance(event, ModelReplied) for run, event in trial.journal.order[:at])
    billed = [one for one in trial.world.ledger.charges if one.run_id in tree and one.at <= at] if at else []
    usd = sum((one.usd for one in billed), Decimal(0))
    # A fork has taken, from its beginning, what it shares with the run that it was made of.
    own = next(
        (event for _, event in trial.journal.order if isinstance(event, RunForked) and event.run_id in tree), None
    )
    shared = Accounts() if own is None else fold_all(trial.journal.events(own.run_id)).accounts.shared
    return steps, sum(one.usage.total_tokens for one in billed) + shared.usage.total_tokens, usd + (shared.cost or 0)


def _made(executed: Sequence[Execution]) -> int:
    """How many tool calls these are; one that was under way when a process died and is made again is the same."""
    by_life: dict[Any, Counter[int]] = defaultdict(Counter)
    for one in executed:
        results = sum(isinstance(event, ToolFinished) for event in one.before)
        # One that a server died of, and that is made again, is the same.
        by_life[one.call, results][one.alive] += not one.died
    return sum(max(lives.values()) for lives in by_life.values())


def _spent(trial: Trial, runs: Sequence[str]) -> tuple[Usage, Decimal]:
    usage, cost = Usage(), Decimal(0)
    for run in runs:
        for event in trial.journal.events(run):
            if isinstance(event, (ModelReplied, ModelFailed, ContextEdited)):
                usage += event.usage or Usage()
                cost += event.cost or Decimal(0)
            if isinstance(event, RunResumed) and event.lost is not None:
                usage += event.lost.usage
                cost += event.lost.cost or Decimal(0)
    return usage, cost


def _taken_up(events: Sequence[Event]) -> set[int]:
    """Before which steps a run that had ended was taken up again, or forked with something that was said."""
    return {
        len(fold_all(events[:i]).steps)
        for i in range(1, len(events))
        if isinstance(events[i], (RunResumed, RunForked)) and isinstance(events[i - 1], RunFinished)
    }


def _errors_in_a_row(path: str, state: RunState, taken_up: set[int]) -> Iterator[str]:
    """`taken_up` are the steps before which a run that had ended was taken up again: it counts anew from there."""
    limit, errors = state.limits.consecutive_errors, 0
    for step in state.steps:
        if step.number in taken_up:
            errors = 0
        if limit is not None and errors >= limit and step.landing is None:
            yield f"{path}: {errors} errors in a row of {limit}"
        if step.calls:
            errors = errors + 1 if all(call.is_error for call in step.calls) else 0
        elif step.message is not None and not step.text.strip() and step.finish != "pause":
            errors += 1


def budgets_are_kept(trial: Trial) -> Iterator[str]:
    """What all runs of an agent take is within its budget, and stands there, once, as soon as they have ended."""
    for path, budget in trial.world.budgets.items():
        spent, runs = budget.spent(), [run for run in trial.journal.ever if trial.path(run) == path]
        trees = list({below for run in runs for below in trial.tree(run)})
        # A budget in memory is that of its process.
        billed, _ = trial.world.ledger.of(trees, here=True)
        # A reply that was not written yet when the process died is told as the worst case of its call; what it did not
        # take others had been given already.
        lost = sum(_lost(event) for run in trees for event in trial.journal.events(run))
        # Nor has it what others took in a process before, of runs that had ended there.
        alone = trial.setup.lasting or not trial.before or len(trial.journal.roots) < 2
        if alone and budget.tokens is not None and max(spent.tokens - lost, billed) > budget.tokens:
            yield f"{path}: was billed {billed} tokens, and tells {spent.tokens}, of a budget of {budget.tokens}"
        states = [fold_all(trial.journal.events(run)) for run in runs]
        total = sum(state.usage.total_tokens - state.accounts.shared.usage.total_tokens for state in states)
        over = trial.last.result is not None and all(trial.ended(run) for run in runs)
        if over and not trial.before and not trial.journal.failed and (spent.tokens, spent.held_tokens) != (total, 0):
            yield f"{path}: {total} tokens were taken, and the budget tells {spent}"


def _lost(event: Event) -> int:
    return event.lost.usage.total_tokens if isinstance(event, RunResumed) and event.lost is not None else 0


def a_step_by_hand_is_one(trial: Trial) -> Iterator[str]:
    """A step that was asked for is one, also when it waits or dies; one that is taken up after its end is another."""
    root = trial.root
    if trial.setup.one_step and root is not None:
        events = trial.journal.events(root)
        asked = 1 + sum(
            isinstance(one, RunFinished) and isinstance(other, RunResumed) for one, other in pairwise(events)
        )
        made = len(fold_all(events).steps)
        if made > asked:
            yield f"{asked} steps were asked for, {made} were made"


def what_was_billed_is_told(trial: Trial) -> Iterator[str]:
    """All that a model charged for a run stands in it, also what came of replies that broke off, or were lost."""
    if trial.journal.failed:
        return
    for run in trial.journal.runs:
        if (trial.before or trial.taken) and not _bounded(trial, run):
            continue
        tokens, dollars = trial.world.ledger.of([run])
        usage, cost = _spent(trial, [run])
        # Of a call that a process left, of a model that only single steps ask, nobody knows what it may have cost.
        unknown = fold_all(trial.journal.events(run)).accounts.unpriced
        if usage.total_tokens < tokens or (cost < dollars and not unknown):
            yield f"{trial.path(run)} was billed {tokens} tokens ({dollars}), and tells {usage.total_tokens} ({cost})"


def _bounded(trial: Trial, run: str) -> bool:
    """Whether each process that had a run had a limit or a budget by which it set aside what calls may take."""
    limits = trial.limits_of(run)
    if limits.tokens is not None or limits.usd is not None or trial.setup.at(trial.path(run)).budget is not None:
        return True
    periods = trial.purses.periods
    return bool(periods) and all(period.under for period in periods)


def a_reply_costs_no_more_than_at_its_model(trial: Trial) -> Iterator[str]:
    """What is told of a reply is at most what its usage costs, in whatever way, at the model whose name it bears."""
    billers: dict[str, set[Any]] = defaultdict(set)
    for _, _, player in trial.world.players:
        billers[player.name].add(player.biller)
    for run in trial.journal.runs:
        for event in trial.journal.events(run):
            if not isinstance(event, ModelReplied) or event.cost is None or event.model not in billers:
                continue
            usage = event.usage
            most = max(
                (usage.input_tokens * max(one.input, one.read, one.write) + usage.output_tokens * one.output) / MILLION
                # Several may have the name: then it may have been any of them.
                for one in billers[event.model]
            )
            if event.cost > most:
                yield f"{trial.path(run)}: a reply of {event.model} cost {event.cost}, at most {most} by its prices"


def parents_pay_for_all(trial: Trial) -> Iterator[str]:
    """Usage and cost of a run that has ended cover those of the runs that worked for it."""
    for run in trial.journal.runs:
        state = fold_all(trial.journal.events(run))
        usage, cost = _spent(trial, trial.tree(run))
        if state.phase != "finished" or trial.journal.failed:
            continue
        if state.usage.total_tokens < usage.total_tokens:
            own = state.usage.total_tokens
            yield f"{trial.path(run)} ({_reason(state)}): {own} tokens, in all {usage.total_tokens}"
        if (state.cost or 0) < cost:
            yield f"{trial.path(run)} ({_reason(state)}): {state.cost} dollars, with those below {cost}"


class _Kept:
    """The journal of a trial, as far as spending reads it: nothing is waited for."""

    def __init__(self, trial: Trial) -> None:
        self.journal = trial.journal

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        if run_id not in self.journal.runs:
            raise UnknownRun(run_id)
        return self.journal.events(run_id)


def spending_comes_to_what_is_told(trial: Trial) -> Iterator[str]:
    """What a run that ended or waits has spent, taken apart, comes to what its state tells; each way to the same."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        state = fold_all(events)
        if state.phase not in ("finished", "paused") or trial.journal.failed:
            continue
        kept: Any = _Kept(trial)
        spending = _at_once(spending_of(events, kept))
        cost = state.accounts.whole_cost
        total, path = spending.total, f"{trial.path(run)} ({_reason(state)})"
        whole = _all_of(spending)
        if (whole.usage, whole.whole_cost) != (state.usage, cost):
            shared = spending.shared_total
            yield f"{path}: spending comes to {total} and {shared}, its result tells {state.usage}, {cost}"
        for what in get_args(By):
            usage = sum([share.usage for share in spending.by(what)], Usage())
            if usage != total.usage:
                yield f"{path}: by {what} it comes to {usage}, in all {total.usage}"


def _all_of(spending: Spending) -> Accounts:
    """What the run has taken, and what it shares with the run that it is a fork of."""
    accounts = Accounts()
    for charge in (*spending.shared, *spending.charges):
        accounts = accounts.charged(charge.usage, charge.cost)
    return accounts


def _at_once(coroutine: Coroutine[Any, Any, Spending]) -> Spending:
    """What a coroutine gives that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: Spending = done.value
        return found
    raise AssertionError("it waits")


def _reason(state: RunState) -> str:
    return "" if state.stop is None else state.stop.reason


def nothing_said_is_lost(trial: Trial) -> Iterator[str]:
    """What the application and people said stands in the journal: the question, what was sent, reasons, answers."""
    root = trial.root
    if root is None:
        return
    events = trial.journal.events(root)
    first: Any = events[0]
    if not any(shows(QUESTION, message.text) for message in first.messages):
        yield "the question is lost"
    added = [event.message.text for event in events if isinstance(event, MessageAdded)]
    for text in trial.sent:
        if not any(shows(text, one) for one in added):
            yield f"what was sent is lost: {text!r}"
    state = fold_all(events)
    texts = [message.text for message in state.messages]
    edited = any(isinstance(event, ContextEdited) for event in events)
    for text in added:
        if ASIDE in text and state.phase == "finished" and not edited and text not in texts:
            yield f"what was sent is not in the history: {text!r}"
    for run in trial.journal.runs:
        yield from _answers(trial, run)


def _answers(trial: Trial, run: str) -> Iterator[str]:
    """The reasons of denials and the results from outside are shown to the model, and so is what a hook says."""
    events = trial.journal.events(run)
    state = fold_all(events)
    # An external tool that ends the run has no result that a hook could be shown.
    left = {(event.step, event.call_id) for event in events if isinstance(event, ResultAwaited) and not event.wait}
    records = {(step.number, record.id): record for step in state.steps for record in step.calls}
    shown = {key: record for key, record in records.items() if key not in left}
    for event in events:
        if isinstance(event, ApprovalDecided) and not event.approved:
            record = shown.get((event.step, event.call_id))
            if record is not None and event.reason and not shows(event.reason, record.result.text):
                yield f"why {record.name} was denied is lost"
    reacts = trial.setup.at(trial.path(run)).hooks.reacts
    calm = trial.undisturbed and not timed_out(trial)
    if calm and reacts is not None and reacts.what == "value" and not reacts.on_errors and reacts.times == 9:
        for record in shown.values():
            text = record.result.text
            settled = FROM_OUTSIDE in text or '"executed":false' in text
            if record.status == "done" and REPLACED not in text and not settled:
                yield f"what the hook put in place of the result of {record.name} is lost"


def what_was_found_is_returned(trial: Trial) -> Iterator[str]:
    """Every reply that was recorded is in the result, and an answer of a type is of that type."""
    result = trial.last.result
    if result is None:
        return
    spoken = [message for message in result.messages if isinstance(message, AssistantMessage)]
    edited = any(isinstance(event, ContextEdited) for event in result.events)
    for step in result.steps:
        message = step.message
        if message is not None and (message.calls or message.text.strip()) and message not in spoken and not edited:
            yield f"a reply is lost: {message}"
    told = [step for step in result.steps if step.text.strip() or (step.message and step.message.shown)]
    texts = bool(told) and bool(told[-1].text.strip())
    if texts and not any(step.failures for step in result.steps) and result.error is None and not result.text.strip():
        yield "the last text is lost"
    typed = trial.setup.output_mode is not None
    told = "there is no output" in result.stop.detail
    if typed and result.stop.reason == "answered" and not isinstance(result.output, Answer) and not told:
        yield f"answered without an answer of the type: {result.output!r}, {result.text!r}"


def a_condition_is_met(trial: Trial) -> Iterator[str]:
    """A run that ends by a condition of its own met it."""
    for run in trial.journal.runs:
        setup, last = trial.setup.at(trial.path(run)), trial.ended(run)
        may = any(name == "stop_when" for name, _ in setup.changes) or CONDITIONS[setup.stop_when] is not None
        if isinstance(last, RunFinished) and last.stop.reason == "condition" and not may:
            state = fold_all(trial.journal.events(run))
            # What it was handed on to has said is its text, and that of no step of its own.
            if not any(text.startswith("long") for text in [state.text, *(step.text for step in state.steps)]):
                yield f"{trial.path(run)} ended by a condition that was not met: {last.stop.detail}"


def what_is_recorded_is_not_done_again(trial: Trial) -> Iterator[str]:
    """After a process died: no reply in the journal is asked for again, and its events stay as they were."""
    prefix = trial.journal.order[: trial.before]
    replied = {(run, event.step) for run, event in prefix if isinstance(event, ModelReplied)}
    for _, _, player in trial.world.players:
        for request in player.requests:
            if (request.run_id, request.step) in replied:
                yield f"step {request.step} is asked for again"
    finished = [run for run, event in prefix if isinstance(event, RunFinished) and run == trial.root]
    more = any(run == trial.root for run, _ in trial.journal.order[trial.before :])
    if finished and not trial.setup.goes_on and more:
        yield "a run that had ended was added to"


RULES: tuple[Callable[[Trial], Iterator[str]], ...] = (
    requests_are_valid,
    histories_are_valid,
    what_is_shown_stands_in_the_history,
    the_journal_is_the_truth,
    time_goes_on,
    nothing_is_over_its_bound,
    every_run_has_one_end,
    limits_are_kept,
    what_was_billed_is_told,
    a_reply_costs_no_more_than_at_its_model,
    parents_pay_for_all,
    spending_comes_to_what_is_told,
    looking_back_tells_what_was_spent,
    a_look_tells_what_came_of_it,
    budgets_are_kept,
    budgets_given_are_kept,
    tools_run_between_start_and_result,
    what_a_tool_finds_out_is_believed,
    calls_are_started_again_for_a_reason,
    writes_happen_once,
    a_hand_off_comes_last,
    nothing_walks_around_the_rules,
    what_a_server_changes_is_asked_about,
    nothing_is_made_too_often,
    a_key_is_that_of_one_call,
    what_began_is_counted,
    what_comes_of_a_call_knows_what_was_said,
    an_end_by_errors_is_earned,
    what_a_step_was_told_stands_before_its_reply,
    a_step_by_hand_is_one,
    only_what_was_offered_runs,
    what_runs_is_what_was_judged,
    what_runs_has_the_arguments_that_were_decided,
    hooks_see_what_is_recorded,
    results_are_kept,
    each_call_has_its_own_result,
    what_is_told_is_true,
    what_a_person_put_in_place_is_told,
    notices_name_what_was_made,
    nothing_said_is_lost,
    what_was_found_is_returned,
    a_hook_that_raises_touches_nobody_else,
    a_condition_is_met,
    tools_keep_their_manners,
    what_is_recorded_is_not_done_again,
    what_is_shown_is_what_happened,
    arguments_arrive_as_they_are,
    an_answer_stands_as_it_was_let_pass,
    what_a_typed_agent_below_gave_is_of_its_type,
    the_veil_hides_and_changes_nothing,
    skills_hold,
    spans_are_those_of_the_journal,
    metrics_are_those_of_the_journal,
    forks_hold,
)

OF_THE_TOP = (
    histories_are_valid,
    what_is_shown_stands_in_the_history,
    the_journal_is_the_truth,
    every_run_has_one_end,
    budgets_given_are_kept,
    nothing_said_is_lost,
    what_was_found_is_returned,
    what_is_shown_is_what_happened,
)
"""What is looked at for each fork as well: the others are about all runs of a journal."""


def broken(trial: Trial, rules: Sequence[Callable[[Trial], Iterator[str]]] = RULES) -> list[str]:
    """Everything that is wrong with a trial that has been carried out."""
    found = []
    for one in whole_family(trial):
        found += [f"the_run: {what}" for what in one.wrong]
        for rule in rules if one is trial else [rule for rule in rules if rule in OF_THE_TOP]:
            try:
                found += [f"{rule.__name__}: {what}" for what in rule(one)]
            except Exception as error:
                found.append(f"{rule.__name__}: {type(error).__name__}: {str(error)[:300]}")
    return list(dict.fromkeys(found))


def hold(trial: Trial) -> None:
    """All of it holds."""
    wrong = broken(trial)
    assert not wrong, "\n".join(wrong).encode("utf-8", "backslashreplace").decode()
