"""What is told of runs after them: the bars of where it went, and figures over all of them, against what each spent."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from folding import fold_all
from journals import at_once

from treadle import statistics
from treadle.drivers.purse.spending import Charge, Spending, spending_of
from treadle.kernel.accounts import Accounts
from treadle.kernel.events import Event, ModelFailed, RunForked, ToolStarted
from treadle.kernel.messages import Usage
from treadle.kernel.state import RunState
from treadle.timetravel.bars import Bar
from treadle.timetravel.waterfall import waterfall_of


def looking_back_tells_what_was_spent(trial: Any) -> Iterator[str]:
    """The bars of each run come to its spending, and so do the figures over all of the runs, with their calls."""
    if trial.journal.failed:
        return
    journal = trial.journal
    spent: dict[str, Spending] = {}
    calls = for_nothing = 0
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        state = fold_all(events)
        if state.phase not in ("finished", "paused"):
            return
        calls += _calls(events, state)
        for_nothing += _for_nothing(events)
        spending = at_once(spending_of(events, journal))
        if state.parent is None:
            spent[run] = spending
        bars = at_once(waterfall_of(events, journal)).bars
        yield from _differ(
            f"{trial.path(run)}: its bars",
            _came_to([bar for bar in bars if not bar.shared]),
            _came_to(spending.charges),
        )
        for bar in bars:
            if bar.seconds is None and state.phase == "finished":
                yield f"{trial.path(run)}: {bar} has no end"
    charges = [charge for one in spent.values() for charge in one.charges]
    figures = at_once(statistics(journal))
    if figures.runs != len(spent):
        yield f"statistics tell {figures.runs} runs of {len(spent)}"
    if not spent:
        return
    wanted = _came_to(charges)
    if figures.tool_calls is not None:
        yield from _differ("statistics, calls", figures.tool_calls.total, calls)
    yield from _differ("statistics, calls by tool", sum(group.count for group in figures.by_tool), calls)
    asked = (len(charges) + for_nothing, for_nothing + sum(one.purpose in FAILED for one in charges))
    by_model = figures.by_model
    told = (sum(group.count for group in by_model), sum(group.failed for group in by_model))
    yield from _differ("statistics, model calls and those that failed", told, asked)
    for what in ("by_model", "by_agent", "by_day"):
        groups = getattr(figures, what)
        tokens = sum(group.tokens.total for group in groups if group.tokens is not None)
        yield from _differ(f"statistics {what}, tokens", tokens, wanted[0].total_tokens)
        costs = [group.cost.total for group in groups if group.cost is not None and group.count]
        if None not in costs and wanted[1] is not None:
            yield from _differ(f"statistics {what}, dollars", sum(costs), wanted[1])
    yield from _differ("statistics, tokens", figures.tokens.total, wanted[0].total_tokens)
    if figures.cost.total is not None and wanted[1] is not None:
        yield from _differ("statistics, dollars", figures.cost.total, wanted[1])


def a_look_tells_what_came_of_it(trial: Any) -> Iterator[str]:
    """A run that is looked at by its id is told as whoever drove it last was told, and nothing is written for it."""
    root, last = trial.root, trial.last.result
    # What a journal redacts is told otherwise to whoever has driven the run.
    if root is None or last is None or trial.journal.failed or trial.setup.paper.redacts or trial.setup.one_step:
        return
    if any(rest.what == "prune" for rest in trial.setup.rests):
        return
    before = len(trial.journal.order)
    seen, told = asyncio.run(trial.agent().result(root)).to_dict(), last.to_dict()
    for result in (seen, told):
        # What no journal can store of its words is told otherwise to whoever has driven the run.
        result["error"] = result["error"] and result["error"]["kind"]
    for what, value in told.items():
        if seen[what] != value:
            yield f"looked at, {what} is {seen[what]}, and it was told as {value}"
    if len(trial.journal.order) != before:
        yield "a look has written something"


FAILED = ("failed attempt", "lost call")


def _for_nothing(events: Sequence[Event]) -> int:
    """The attempts at a model that a run has made itself, that failed and took nothing."""
    own = events[max([i for i, event in enumerate(events) if isinstance(event, RunForked)], default=-1) + 1 :]
    return sum(isinstance(event, ModelFailed) and event.usage is None for event in own)


def _calls(events: Sequence[Event], state: RunState) -> int:
    """The calls that a run has made itself: those of its replies, and those that began early and are in none."""
    own, shared = events, 0
    for i, event in enumerate(events):
        if isinstance(event, RunForked):
            before = fold_all(events[: i + 1])
            own, shared = events[i + 1 :], len(before.steps) + (before.step is not None)
    records = [record for step in (*state.steps, *filter(None, [state.step]))[shared:] for record in step.calls]
    early = sum(isinstance(event, ToolStarted) and event.name != "" for event in own)
    return sum(record.status != "refused" for record in records) + early - sum(bool(one.began_as) for one in records)


def _came_to(parts: "list[Bar] | tuple[Charge, ...]") -> tuple[Usage, Any]:
    accounts = Accounts()
    for part in parts:
        if part.usage is not None:
            accounts = accounts.charged(part.usage, part.cost)
    return accounts.usage, accounts.whole_cost


def _differ(what: str, told: Any, wanted: Any) -> Iterator[str]:
    if told != wanted:
        yield f"{what} come to {told}, and it spent {wanted}"
