"""Spending: what a run has spent, by model, agent, tool and step. A fold over its events and those of runs below it.

Each model call that took anything is one `Charge`: a reply, an attempt that failed, a summary. The sums are made as the
run itself makes them (`Accounts.charged`), so that they are what its result says: a part whose price is not known makes
the cost of the whole unknown, and one that is estimated makes it an estimate.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, get_args

from treadle.drivers.below import run_id_below
from treadle.drivers.purse.sheet import sheet
from treadle.journal import Journal, JournalError
from treadle.journal.families import read_below
from treadle.kernel.accounts import Accounts, Spent
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    ContextEdited,
    Event,
    ModelFailed,
    ModelReplied,
    ResultAwaited,
    RunForked,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.messages import Usage

Purpose = Literal["reply", "closing reply", "failed attempt", "lost call", "summary", "sub-run"]
"""What a charge was for: a "lost call" was under way when a process died, and may have been billed; a "sub-run" is all
that a run took of which only the run above it still tells."""

By = Literal["model", "agent", "tool", "step"]
"""What spending is taken apart by."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one model call took.

    Attributes:
        run_id: the run that made it: the one that was asked about, or one below it.
        agent: the agent of that run; empty if nobody knows it any more.
        step: the step of that run.
        model: the model: of a reply as it calls itself, else as it was asked; empty if nobody knows it any more.
        purpose: what it was for.
        usage: its tokens.
        cost: its dollars; None if its price is not known.
        tool: the tool of the run that was asked about under whose call it was made; empty if that run made it itself.
        top_step: the step of the run that was asked about to which it belongs.
    """

    run_id: str
    agent: str
    step: int
    model: str
    purpose: Purpose
    usage: Usage
    cost: Decimal | None
    tool: str = ""
    top_step: int = 0

    @property
    def estimated(self) -> bool:
        """Whether its tokens, and with them its dollars, are an estimate: nobody counted them all."""
        return self.usage.estimated


@dataclass(frozen=True, slots=True)
class Share:
    """What some of a run's charges come to.

    Attributes:
        name: of what: a model, an agent, a tool or the number of a step; empty for the whole, for what nobody knows the
            name of, and among tools for what the run took itself.
        usage: their tokens.
        cost: their dollars; None if the price of any of them is not known, and where no call was made at all.
        calls: among tools, how often it was called.
    """

    name: str
    usage: Usage
    cost: Decimal | None
    calls: int = 0

    @property
    def estimated(self) -> bool:
        """Whether any part of it is an estimate."""
        return self.usage.estimated


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run has spent, the runs below it included.

    A fork has spent what it took itself. What was taken before, in the steps that it shares with the run that it is a
    fork of, counts against its limits and stands in its result, but that run has paid it: it is told as `shared`.

    Attributes:
        run_id: the run.
        charges: every model call that took anything, in the order of the run's events.
        calls: how often the run has called each of its tools.
        shared: the model calls of a fork that another run has paid, as they stand in that run.
    """

    run_id: str
    charges: tuple[Charge, ...]
    calls: Mapping[str, int] = field(default_factory=dict)
    shared: tuple[Charge, ...] = ()

    @property
    def total(self) -> Share:
        """All of it: the `usage` and `cost` of the run's result, but for what is `shared`."""
        return _share("", self.charges)

    @property
    def shared_total(self) -> Share:
        """All that is `shared`."""
        return _share("", self.shared)

    def by(self, what: By) -> tuple[Share, ...]:
        """It taken apart, in the order in which each first took something; the parts come to `total`.

        By "tool", an agent as a tool and a hand-off take all that was spent below them, and a tool that calls no model
        takes nothing; by "step", what runs below took belongs to the step of this run that called them.

        Raises:
            Misuse: it is taken apart by nothing of that name.
        """
        if what not in get_args(By):
            raise Misuse(f"spending is taken apart by {', '.join(get_args(By))}; it was given {what!r}")
        parts: dict[str, list[Charge]] = {}
        for charge in self.charges:
            name = str(charge.top_step) if what == "step" else str(getattr(charge, what))
            parts.setdefault(name, []).append(charge)
        if what != "tool":
            return tuple([_share(name, charges) for name, charges in parts.items()])
        for name in self.calls:
            parts.setdefault(name, [])
        return tuple([_share(name, charges, self.calls.get(name, 0)) for name, charges in parts.items()])

    def to_csv(self, by: By | None = None) -> str:
        """It as CSV (RFC 4180): a line a charge, or a line a part.

        A cost is written with all its digits, and is empty where it is not known. A name that a spreadsheet would
        compute is marked as text by an apostrophe.

        Raises:
            Misuse: it is taken apart by nothing of that name.
        """
        part = () if by is None else (by, "calls") if by == "tool" else (by,)
        columns = _row(_NOTHING) if by is None else [*part, *_amounts(_NOTHING)]
        return sheet(list(columns), [list(row.values()) for row in self._rows(by)])

    def to_dict(self, by: By | None = None) -> dict[str, Any]:
        """It as plain data for JSON, costs as text: `run_id`, `total`, and `charges` or the parts under `by`.

        Of a fork also `shared`: what it comes to that another run has paid.

        Raises:
            Misuse: it is taken apart by nothing of that name.
        """
        name = "charges" if by is None else f"by_{by}"
        shared = {"shared": _amounts(self.shared_total)} if self.shared else {}
        return {"run_id": self.run_id, "total": _amounts(self.total), name: self._rows(by), **shared}

    def _rows(self, by: By | None) -> list[dict[str, Any]]:
        if by is None:
            return [_row(charge) for charge in self.charges]
        called = by == "tool"
        return [
            {by: share.name} | ({"calls": share.calls} if called else {}) | _amounts(share) for share in self.by(by)
        ]


_NOTHING = Charge("", "", 0, "", "reply", Usage(), None)


def _row(charge: Charge) -> dict[str, Any]:
    return {
        "run_id": charge.run_id,
        "agent": charge.agent,
        "step": charge.step,
        "model": charge.model,
        "purpose": charge.purpose,
        "tool": charge.tool,
        "top_step": charge.top_step,
        **_amounts(charge),
    }


def _amounts(of: Charge | Share) -> dict[str, Any]:
    """Tokens of every kind that there is, dollars, and whether they are an estimate."""
    tokens = {name: getattr(of.usage, name) for name in Usage.__struct_fields__ if name != "estimated"}
    return {**tokens, "cost": None if of.cost is None else f"{of.cost:f}", "estimated": of.estimated}


def _share(name: str, charges: Iterable[Charge], calls: int = 0) -> Share:
    accounts = Accounts()
    for charge in charges:
        accounts = accounts.charged(charge.usage, charge.cost)
    return Share(name, accounts.usage, accounts.whole_cost, calls)


async def spending_of(events: Sequence[Event], journal: Journal | None) -> Spending:
    """What the run of `events` has spent; `journal` has the runs below it, if it had any.

    Of one that the journal does not have any more, what the run above it recorded is one charge.

    Raises:
        JournalError: the journal cannot be read, and nothing is recorded of a run that may be in it.
    """
    ledger = _Ledger(events)
    own, shared = [await _charges(ones, events[0].at, journal) for ones in (ledger.entries, ledger.shared)]
    return Spending(ledger.run_id, tuple(own), ledger.calls, tuple(shared))


class Own:
    """What the run of `events` has spent itself, and what it tells of runs below it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._entries = _Ledger(events).entries
        self.told = {one.run_id for one in self._entries if isinstance(one, _Work) and one.spent is not None}
        """The runs below of which it tells what they took, with all that worked for these."""

    def charges(self, known: Container[str]) -> list[Charge]:
        """Its model calls, and what it tells of the runs below that are not `known`."""
        charges: list[Charge] = []
        for one in self._entries:
            if isinstance(one, Charge):
                charges.append(one)
            elif one.spent is not None and one.run_id not in known:
                charges.append(_told_of(one, one.spent))
        return charges


@dataclass(slots=True)
class _Work:
    """A call that a run below may have worked on.

    `is_back` says that it came back in the process that began it, so that a run below would have been recorded with it.
    """

    run_id: str
    step: int
    tool: str
    spent: Spent | None = None
    in_doubt: bool = False
    is_back: bool = False


class _Ledger:
    """The charges of one run in their order, and between them the calls that runs below it may have worked on.

    Of a fork, `shared` are those of the run that it is a fork of.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.entries: list[Charge | _Work] = []
        self.shared: list[Charge | _Work] = []
        self.calls: dict[str, int] = {}
        self.run_id = self._agent = self._model = self._asked = ""
        self._step, self._landing, self._again = 0, False, 0
        self._tools: dict[str, str] = {}
        self._made: dict[str, int] = {}
        self._work: dict[str, _Work] = {}
        for event in events:
            self._enter(event)
            self._again = event.again if isinstance(event, RunForked) else max(0, self._again - 1)
        self.entries, self.shared = _that_took_something(self.entries), _that_took_something(self.shared)

    def _enter(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.run_id, self._agent, self._model = event.run_id, event.agent, event.model
            case RunForked():
                self._forked(event)
            case StepPrepared():
                self._asked, self._landing = event.model or self._model, event.landing is not None
            case ModelReplied():
                self._tools |= {call.id: call.name for call in event.message.calls}
                self._charge(event, "closing reply" if self._landing else "reply", event.usage)
                self._step = event.step + 1
            case ModelFailed(usage=Usage() as usage):
                self._charge(event, "failed attempt", usage)
            case ContextEdited() if event.usage is not None or event.cost is not None:
                self._charge(event, "summary", event.usage or Usage())
            case ToolReacted(action="call", call=call) if call is not None:
                self._made[event.call_id] = self._made.get(event.call_id, 1) + 1
                self._tools[event.call_id] = call.name
            case RunResumed():
                if event.lost is not None:
                    self._lost(event.lost)
                for work in self._work.values():
                    work.in_doubt = not work.is_back
            case ToolStarted() | ToolFinished() | ResultAwaited():
                self._call(event)
            case _:
                pass

    def _charge(self, event: ModelReplied | ModelFailed | ContextEdited, purpose: Purpose, usage: Usage) -> None:
        model = event.model or ("" if purpose == "summary" else self._asked)
        step = self._step
        self.entries.append(Charge(self.run_id, self._agent, step, model, purpose, usage, event.cost, top_step=step))

    def _lost(self, lost: Spent) -> None:
        charge = Charge(
            self.run_id, self._agent, self._step, self._asked, "lost call", lost.usage, lost.cost, top_step=self._step
        )
        self.entries.append(charge)

    def _call(self, event: ToolStarted | ToolFinished | ResultAwaited) -> None:
        work = self._work.get(self._run_below(event.step, event.call_id))
        if not isinstance(event, ToolStarted):
            if work is not None:
                work.spent, work.is_back = event.spent or work.spent, not work.in_doubt
            return
        if work is None:
            work = self._begun(event.step, event.call_id, event.name)
            # What a fork tells again of the step before it, that other run has begun.
            if not self._again:
                self.calls[work.tool] = self.calls.get(work.tool, 0) + 1
        work.is_back = False

    def _forked(self, event: RunForked) -> None:
        for call_id, spent in event.taken.items():
            step = self._step - 1
            work = self._work.get(self._run_below(step, call_id)) or self._begun(step, call_id, "")
            work.spent = spent
        self.run_id, self._model = event.run_id, event.model or self._model
        self.shared += self.entries
        self.entries, self.calls, self._work = [], {}, {}

    def _run_below(self, step: int, call_id: str) -> str:
        return run_id_below(self.run_id, step, call_id, self._made.get(call_id, 1))

    def _begun(self, step: int, call_id: str, name: str) -> _Work:
        work = _Work(self._run_below(step, call_id), step, name or self._tools.get(call_id, ""))
        self._work[work.run_id] = work
        self.entries.append(work)
        return work


def _that_took_something(entries: Iterable[Charge | _Work]) -> list[Charge | _Work]:
    return [one for one in entries if isinstance(one, Charge) or one.spent or not one.is_back]


async def _charges(entries: Iterable[Charge | _Work], began: float, journal: Journal | None) -> list[Charge]:
    found: list[Charge] = []
    for entry in entries:
        found.extend([entry] if isinstance(entry, Charge) else await _below(entry, began, journal))
    return found


async def _below(work: _Work, began: float, journal: Journal | None) -> list[Charge]:
    """What the run below has spent that worked on a call of one which began at `began`; nothing if there was none."""
    events: Sequence[Event] | None = None
    if journal is not None:
        try:
            events = await read_below(journal, work.run_id, began)
        except JournalError:
            if work.spent is None:
                raise
    if events is not None:
        below = await _charges(_Ledger(events).entries, events[0].at, journal)
        return [replace(charge, tool=work.tool, top_step=work.step) for charge in below]
    return [] if work.spent is None else [_told_of(work, work.spent)]


def _told_of(work: _Work, spent: Spent) -> Charge:
    """What only the run above still tells of a run below it."""
    cost = None if spent.unpriced else spent.cost
    return Charge(work.run_id, "", 0, "", "sub-run", spent.usage, cost, work.tool, work.step)
