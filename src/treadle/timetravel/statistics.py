"""Statistics: figures over many runs, each thing counted once.

A run is one that works for no other. What was spent below it is its own, and is told once among the models and agents:
there each model call belongs to whoever made it. Of a fork only what it did itself counts: the rest is the run's that
it is a fork of. A cost that is not known makes a sum unknown, and is left out of the percentiles, which say so.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from treadle.drivers.purse.spending import Charge, Own
from treadle.drivers.watching import asked_in, replied_in
from treadle.journal import Journal, JournalDamaged, RunInfo, UnknownRun
from treadle.journal.families import every, works_for
from treadle.journal.ones_own import check_journal, read_of
from treadle.kernel.accounts import Accounts
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import Event, ModelFailed, RunForked
from treadle.kernel.fold import fold
from treadle.kernel.messages import Usage
from treadle.kernel.money import NOTHING, total
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.timetravel.figures import Group, Money, Spread, Statistics


@dataclass(slots=True)
class _Told:
    """What one run did itself.

    `lacks` says that nobody tells what a damaged run below it took; `for_nothing` are the models of attempts that
    failed and took nothing, which are no charges.
    """

    info: RunInfo
    root: str
    own: Own
    charges: list[Charge] = field(default_factory=list)
    for_nothing: list[str] = field(default_factory=list)
    lacks: bool = False
    steps: int = 0
    calls: int = 0
    seconds: float = 0.0
    replies: list[tuple[str, float]] = field(default_factory=list)
    tools: list[tuple[str, float | None, bool]] = field(default_factory=list)


async def statistics(
    journal: Journal,
    *,
    since: float | None = None,
    until: float | None = None,
    agent: str | None = None,
    model: str | None = None,
    user: str | None = None,
) -> Statistics:
    """Figures over the runs of a journal, for which all holds that is given.

    Each run is read once, one after the other; one that is deleted meanwhile is left out.

    Args:
        journal: where the runs are.
        since: they began then or later, in Unix seconds.
        until: they began before that, in Unix seconds.
        agent: the name of their agent.
        model: the name of the model that they began with.
        user: whose they are.

    Raises:
        Misuse: `until` is not after `since`, or `journal` is none.
        JournalUnavailable: the journal cannot be read.
    """
    check_journal("statistics", journal)
    if since is not None and until is not None and until <= since:
        raise Misuse("until is a time after since; there can be no run between them")
    lines = await _lines(journal)
    wanted = {
        line.run_id
        for line in lines.values()
        if _above(line, lines) is None
        and (since is None or line.started_at >= since)
        and (until is None or line.started_at < until)
        and (agent is None or line.agent == agent)
        and (model is None or line.model == model)
        and (user is None or line.user == user)
    }
    told: list[_Told] = []
    gone: set[str] = set()
    ended: Counter[str] = Counter()
    for line in lines.values():
        root = _root(line, lines)
        if root not in wanted:
            continue
        try:
            found = await _read(journal, line, root)
        except UnknownRun:
            # It was deleted since it was listed.
            gone.add(line.run_id)
            continue
        if line.run_id == root:
            ended["damaged" if found is None else _how(line)] += 1
        if found is not None:
            told.append(found)
    wanted -= gone
    told = [one for one in told if one.root in wanted]
    _charge(told, {run_id: line for run_id, line in lines.items() if run_id not in gone})
    return _added_up(told, wanted, ended)


async def _lines(journal: Journal) -> dict[str, RunInfo]:
    return {line.run_id: line async for line in every(journal)}


def _above(line: RunInfo, lines: Mapping[str, RunInfo]) -> RunInfo | None:
    """The run for which a run works; None if there is none, or it is gone, whatever has its name by now."""
    above = None if line.parent is None else lines.get(line.parent.run_id)
    if above is None or above.fork is not None or above.damage:
        # No fork has the name of another run, and what is damaged may not say when it began.
        return above
    return above if works_for(line.parent, above.started_at) else None


def _root(line: RunInfo, lines: Mapping[str, RunInfo]) -> str:
    """The run at the top for which a run works."""
    while (above := _above(line, lines)) is not None:
        line = above
    return line.run_id


def _how(line: RunInfo) -> str:
    return line.stop.reason if line.stop is not None and not line.damage else line.status


async def _read(journal: Journal, line: RunInfo, root: str) -> _Told | None:
    """What a run did; None if it is damaged."""
    try:
        events = await read_of(journal, line.run_id)
        told = _Told(line, root, Own(events))
        _tell(told, events)
    except (JournalDamaged, IllegalEvent):
        return None
    return told


def _charge(told: Sequence[_Told], lines: Mapping[str, RunInfo]) -> None:
    """Gives each what it took. Of a damaged run, and of those that worked for it, the run above it tells that."""
    whole = {one.info.run_id: one for one in told}
    for one in told:
        if not _within_told(one.info, lines, whole):
            one.charges = one.own.charges(whole)
    for line in lines.values():
        info = _above(line, lines)
        above = None if info is None else whole.get(info.run_id)
        if above is not None and line.run_id not in whole and line.run_id not in above.own.told:
            above.lacks = True


def _within_told(line: RunInfo, lines: Mapping[str, RunInfo], whole: Mapping[str, _Told]) -> bool:
    """Whether what the run took is part of what another run tells of one that is damaged."""
    while (info := _above(line, lines)) is not None:
        above = whole.get(info.run_id)
        if line.run_id not in whole and above is not None and line.run_id in above.own.told:
            return True
        line = info
    return False


def _tell(told: _Told, events: Sequence[Event]) -> None:
    state, shared, before = RunState(), 0, 0.0
    withdrawn: list[CallRecord] = []
    for event in events:
        was, state = state, fold(state, event)
        if isinstance(event, RunForked):
            shared, before = len(state.steps) + (state.step is not None), state.elapsed
            withdrawn.clear()
            told.for_nothing.clear()
        elif isinstance(event, ModelFailed) and event.usage is None:
            told.for_nothing.append(event.model or asked_in(was))
        if was.early and not isinstance(event, RunForked):
            withdrawn += _withdrawn(was, state)
    steps = [*state.steps, *([] if state.step is None else [state.step])][shared:]
    told.steps = sum(step.message is not None for step in steps)
    told.seconds = state.elapsed - before
    for step in steps:
        _tell_step(told, step)
    for one in (*withdrawn, *state.early):
        told.calls += 1
        back = one.result or one.found
        told.tools.append((one.name, one.seconds, back is not None and back.is_error))


def _withdrawn(was: RunState, state: RunState) -> list[CallRecord]:
    """The calls that had begun early and that the reply which stands does not make, or that a crash cut off."""
    last = state.step or (state.steps[-1] if state.steps else None)
    kept = {one.id for one in state.early}
    kept |= {record.began_as for record in (() if last is None else last.calls)}
    return [one for one in was.early if one.id not in kept]


def _tell_step(told: _Told, step: Step) -> None:
    if step.message is not None:
        told.replies.append((step.model, replied_in(step, step.replied_at)))
    for record in step.calls:
        if record.status == "refused":
            continue
        told.calls += 1
        told.tools.append((record.doing.name, record.seconds, record.is_error))


def _added_up(told: Sequence[_Told], wanted: Collection[str], ended: Counter[str]) -> Statistics:
    whole: dict[str, list[_Told]] = defaultdict(list)
    for one in told:
        whole[one.root].append(one)
    # Of one that is damaged what worked for it still counts among the models, agents and tools.
    trees = [tree for root, tree in whole.items() if any(one.info.run_id == root for one in tree)]
    days: dict[str, list[list[_Told]]] = defaultdict(list)
    for tree in trees:
        days[time.strftime("%Y-%m-%d", time.localtime(_top(tree).info.started_at))].append(tree)
    agents: dict[str, list[list[_Told]]] = defaultdict(list)
    for one in told:
        agents[one.info.agent].append([one])
    return Statistics(
        len(wanted),
        dict(ended.most_common()),
        _spread([sum(one.steps for one in tree) for tree in trees]),
        _spread([sum(one.calls for one in tree) for tree in trees]),
        _spread([_tokens(_charges(tree)) for tree in trees]),
        _spread([_top(tree).seconds for tree in trees]),
        _money([_whole_cost(tree) for tree in trees]) if trees else None,
        _models(told),
        _sorted([_of_runs(name, runs) for name, runs in agents.items()]),
        _tools(told),
        tuple(_of_runs(day, runs) for day, runs in sorted(days.items())),
    )


def _top(tree: Sequence[_Told]) -> _Told:
    return next((one for one in tree if one.info.run_id == one.root), tree[0])


def _charges(tree: Iterable[_Told]) -> list[Charge]:
    return [charge for one in tree for charge in one.charges]


def _whole_cost(tree: Sequence[_Told]) -> Decimal | None:
    return None if any(one.lacks for one in tree) else _cost(_charges(tree))


def _of_runs(name: str, trees: Sequence[Sequence[_Told]]) -> Group:
    ended = [info.stop for tree in trees if (info := _top(tree).info).status == "finished"]
    failed = sum(stop is None or not stop.finished for stop in ended)
    costs = _money([_whole_cost(tree) for tree in trees])
    tokens = _spread([_tokens(_charges(tree)) for tree in trees])
    return Group(
        name,
        len(trees),
        failed,
        tokens,
        costs,
        _spread([_top(tree).seconds for tree in trees]),
        len(trees) - len(ended),
    )


def _models(told: Sequence[_Told]) -> tuple[Group, ...]:
    charges: dict[str, list[Charge]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    failed = Counter(model for one in told for model in one.for_nothing)
    for model in failed:
        charges[model] = []
    for one in told:
        for charge in one.charges:
            charges[charge.model].append(charge)
        for model, took in one.replies:
            seconds[model].append(took)
            charges.setdefault(model, [])
    return _sorted(
        [
            Group(
                model,
                len(found) + failed[model],
                failed[model] + sum(charge.purpose in ("failed attempt", "lost call") for charge in found),
                _spread([charge.usage.total_tokens for charge in found]),
                _money([_cost([charge]) for charge in found]),
                _spread(seconds[model]),
            )
            for model, found in charges.items()
        ]
    )


def _tools(told: Sequence[_Told]) -> tuple[Group, ...]:
    calls: dict[str, list[tuple[float | None, bool]]] = defaultdict(list)
    for one in told:
        for name, seconds, is_error in one.tools:
            calls[name].append((seconds, is_error))
    return _sorted(
        [
            Group(
                name,
                len(found),
                sum(is_error for _, is_error in found),
                None,
                None,
                _spread([seconds for seconds, _ in found if seconds is not None]),
            )
            for name, found in calls.items()
        ]
    )


def _sorted(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda group: (-group.count, group.name)))


def _tokens(charges: Iterable[Charge]) -> int:
    return sum([charge.usage for charge in charges], Usage()).total_tokens


def _cost(charges: Iterable[Charge]) -> Decimal | None:
    """The dollars of some charges; None if any of them is not known."""
    accounts = Accounts()
    for charge in charges:
        accounts = accounts.charged(charge.usage, charge.cost)
    return accounts.whole_cost


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    return Spread(sum(ordered), _percentile(ordered, 50), _percentile(ordered, 95), ordered[-1])


def _money(costs: Sequence[Decimal | None]) -> Money:
    known = sorted(cost for cost in costs if cost is not None)
    unknown = len(costs) - len(known)
    whole = None if unknown else total(NOTHING, *known)
    if not known:
        return Money(whole, None, None, None, unknown)
    return Money(whole, _percentile(known, 50), _percentile(known, 95), known[-1], unknown)


def _percentile(ordered: Sequence[Any], percent: int) -> Any:
    """By nearest rank: R. J. Hyndman and Y. Fan, Sample Quantiles in Statistical Packages (1996), definition 1."""
    return ordered[max(0, math.ceil(percent * len(ordered) / 100) - 1)]
