"""Share: what a run, with all that work for it, has taken of one purse, and its row there.

The row is raised before a model call and lowered to what was used once that stands in the journal. A process that was
stopped meanwhile may find that the run went on elsewhere: what that one used stands in the row then, and stays.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from math import inf

from treadle.drivers.clock import day, steady
from treadle.drivers.purse.budget import Budget, log
from treadle.drivers.purse.claims import Borrower, Claim, paid_elsewhere, used_in
from treadle.drivers.purse.ledger import NOTHING, row_name
from treadle.drivers.purse.patience import RunInDoubt
from treadle.drivers.purse.rows import BudgetBusy, BudgetLost, BudgetUnavailable, Place, Row
from treadle.journal import JournalError


class Share:
    """What one run, with all that work for it, has taken of one purse.

    Attributes:
        run: the run.
        flight: by run, the worst case of its call under way.
        budgets: those that are kept in the purse and that it draws on.
    """

    def __init__(self, budget: Budget, key: str | None, run: Borrower, run_id: str, taken_up: bool) -> None:
        self.run = run
        self.flight: dict[str, Claim] = {}
        self._ledger, self._purse, self._run_id = budget.ledger, budget.series, run_id
        self._row_of, self._may_be_old = budget.row_of, taken_up
        self._fixed, self._key = key, key or ""
        self._base: Claim | None = None if budget.per == "day" else paid_elsewhere(run.state)
        # What an earlier process left stands until this one knows of everything that works for the run.
        self._written: tuple[Claim, Claim] | None = None if taken_up else (NOTHING, NOTHING)
        # What was to be written since, of which nobody has said whether it was.
        self._unheard: list[tuple[Claim, Claim]] = []
        # Those on which an earlier process may have left something.
        self._earlier_days = taken_up and budget.per == "day"
        # For whom a run works stands in its row, and nowhere else.
        self._is_said = taken_up or budget.per not in ("user", "conversation")
        # The row of which it was not sure that it was this process's to set, and when the journal was asked about it.
        self._doubted: Row | None = None
        self._asked = -inf
        # The row that stood there when the journal said that nobody goes on from where the run came to rest here.
        self._at_rest: Row | None = None
        self._goes_on = False
        self.budgets = [budget]

    def is_of(self, budget: Budget, key: str | None) -> bool:
        """Whether `budget` has its purse under `key` where this one is."""
        at_one_place = self._ledger.is_same(budget.ledger) and self._purse == budget.series
        return at_one_place and self._fixed == key

    @property
    def key(self) -> str:
        """Whose purse it is."""
        return self._key

    def own(self) -> Claim:
        """What the run claims of this purse."""
        return _money(self.run.claimed) - self._begun()

    def _settled(self) -> Claim:
        """What the run has used in all, without the calls under way."""
        return _money(self.run.claimed - sum(self.flight.values(), NOTHING))

    def others(self) -> Claim:
        """What other runs claim of it."""
        self._begun()
        return self._ledger.others(self._place)

    def is_held(self) -> bool:
        """Whether other runs claim of it what they have not used."""
        self._begun()
        held = self._ledger.held(self._place)
        return held.tokens > 0 or held.usd > 0

    def has_set_aside(self, tokens: int) -> bool:
        """Whether an earlier process may have set that many aside beyond what the run had used by then."""
        used, row = used_in(self.run.state).tokens - self._begun().tokens, self._ledger.row(self._place)
        # One that does not come up to that tells of another time; one beyond that, of a reply that nobody recorded.
        return row is None or row.used.tokens > used or not used <= row.claimed.tokens < used + tokens

    def draw(self, budget: Budget, more: Claim) -> Claim | None:
        """Raises the claim by `more`, unless `budget` does not allow that: what others claim then, else None.

        Raises:
            RunInDoubt: the run may be another process's by now; nothing is set.
            TakenOver: it is.
        """
        row = self._row(more)
        with self._heard(row):
            refused = self._ledger.draw(self._place, row, budget.most, self._admit)
        if refused is None:
            self._left_as(row.claimed, row.used)
            self._is_said = True
        return refused

    def stand(self, run: Borrower) -> None:
        """Sets the row that an earlier process left of `run` to what it has used, where it is between two steps.

        Nothing works for it then. What was set aside for a call that was lost is used, and nobody is to wait for it.
        Raises as `draw`.
        """
        if self._written is None and self.run is run:
            self._set(self._row(NOTHING), None, self._admit)

    def begin(self) -> None:
        """Makes the row of a run that has begun and not asked for anything, where it is needed to say whose it is.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        if not self._is_said:
            self._ledger.settle(self._place, Row(self._begun(), NOTHING, NOTHING), ())
            self._is_said = True

    def write(self) -> None:
        """Sets the row to what is claimed now. What was paid is not lost where that fails: the row is higher then.

        Raises:
            BudgetBusy: another process holds the file or the purse, or a server does not answer.
        """
        self._set_row()
        self._close_earlier_days()

    def _set_row(self) -> None:
        if self._written is None and (self._goes_on or not self.is_over):
            return
        if self._written is not None and (self._base is None or self._is_written(self._row(NOTHING))):
            return
        try:
            row = self._row(NOTHING)
            self._set(row, self._as_found(row) if (left := self._left()) is None else left)
        except BudgetBusy:
            raise
        except BudgetUnavailable as error:
            self.unwritten(error)

    def _set(
        self, row: Row, before: tuple[Row, ...] | None, admit: Callable[[Row | None], None] = lambda _: None
    ) -> None:
        """Sets the row, as `Ledger.settle` does, and warns of the shares that are used with that."""
        marks = {mark: budget for budget in self.budgets for mark in budget.marks}
        with self._heard(row):
            sums, told = self._ledger.settle(self._place, row, tuple(marks), before, admit)
        self._left_as(row.claimed, row.used)
        for mark in told:
            marks[mark].tell(mark, marks[mark].balance(self._key, sums))

    def _close_earlier_days(self) -> None:
        """Gives back what a process that died had set aside on a day before this one, once the run has come to rest.

        What the run had used when its part of the next day began was used on that one.
        """
        if not (self._earlier_days and self.is_over):
            return
        place = self._place
        try:
            rows = self._ledger.rows(place.purse, place.run)
            for (key, row), (_, after) in pairwise(rows):
                taken = after.base - row.base
                if row.claimed != taken or row.used != taken:
                    self._ledger.settle(place._replace(key=key), Row(row.base, taken, taken), (), (row,))
        except BudgetBusy:
            raise
        except BudgetUnavailable as error:
            self.unwritten(error)
            return
        self._earlier_days = False

    def _left(self) -> tuple[Row, ...] | None:
        """The row as this process may have left it: whoever has taken the run over since has set another.

        None where this process has not set it.
        """
        if self._written is None:
            return None
        begun = self._begun()
        return tuple([Row(begun, *one) for one in (self._written, *self._unheard)])

    def _as_found(self, row: Row) -> tuple[Row, ...]:
        """The row as an earlier process left it, where this one set none: what to lower to `row`, unless it changes.

        Raises:
            RunInDoubt: it may be that of somebody who goes on with the run by now, and has told the journal first.
        """
        found = self._ledger.row(self._place)
        if found in (None, row):
            return ()
        if found != self._at_rest:
            raise RunInDoubt(partial(self._look_who_goes_on, found))
        return (found,)

    async def _look_who_goes_on(self, found: Row | None) -> None:
        try:
            self._goes_on = not await self.run.recorder.is_last()
        except JournalError as error:
            self._goes_on = True
            self.unwritten(error)
        self._at_rest = found

    def _left_as(self, claimed: Claim, used: Claim) -> None:
        self._written = claimed, used
        self._unheard.clear()

    def _is_written(self, row: Row) -> bool:
        return not self._unheard and self._written == (row.claimed, row.used)

    def _admit(self, found: Row | None) -> None:
        """Raises where the run may be another's: what that one has used since would be forgotten here."""
        lease = self.run.lease
        if lease is None:
            return
        lease.require()
        left = self._left()
        # The first that was to be set, and may not have been, may have been set before somebody else's.
        is_as_left = found is None or (not self._unheard if left is None else found in left)
        if is_as_left and lease.is_sure:
            return
        if found == self._doubted and steady() - self._asked < lease.held.seconds:
            return
        self._doubted = found
        raise RunInDoubt(self._confirm)

    async def _confirm(self) -> None:
        asked = steady()
        await self.run.recorder.confirm()
        self._asked = asked

    @contextmanager
    def _heard(self, row: Row) -> Iterator[None]:
        try:
            yield
        except BudgetLost:
            # It may have been done, or is done yet. So the row is set anew, also to what it was last known to be.
            if (unheard := (row.claimed, row.used)) not in self._unheard:
                self._unheard.append(unheard)
            raise

    @property
    def is_over(self) -> bool:
        """Whether the run has nothing more to write after what it has used by now."""
        return self.run.state.phase in ("finished", "paused")

    def unwritten(self, error: BudgetUnavailable | JournalError) -> None:
        """What the run has used could not be written."""
        words = "run %s has used less than is set aside for it, which cannot be written: %s"
        log.warning(words, self._run_id, error, extra={"run_id": self._run_id})

    @property
    def _place(self) -> Place:
        name = self._row_of(self._run_id, _row_name(self.run))
        if self._may_be_old:
            self._ledger.adopt(self._purse, self._run_id, name)
            self._may_be_old = False
        return Place(self._purse, self._key, name)

    def _row(self, more: Claim) -> Row:
        base = self._begun()
        return Row(base, _money(self.run.claimed + more) - base, self._settled() - base)

    def _begun(self) -> Claim:
        """What the run had used when its part of the purse began."""
        if self._base is None:
            self._base = self._begin(self._today())
        return self._base

    def _today(self) -> str:
        """The day on which a call counts: the clock's, or a later one, on which the run began or drew."""
        place = self._place
        began = self.run.state.started_at
        return max([day(), day(began or None), *[key for key, _ in self._ledger.rows(place.purse, place.run)]])

    def turn(self) -> None:
        """A new day has a new purse; what is under way counts there too, if more is asked for before it is settled."""
        if self._fixed is not None or day() <= self._key:
            return
        is_mine = self._base is not None and self._written is not None
        if self._base is not None and is_mine:
            settled = self._settled() - self._base
            row = Row(self._base, settled, settled)
            with self._heard(row):
                self._ledger.settle(self._place, row, (), self._left())
            self._left_as(settled, settled)
        # Until the place of the new day has answered, what is under way counts on the old one.
        self._base = self._begin(self._today())
        if is_mine:
            self._left_as(NOTHING, NOTHING)

    def _begin(self, key: str) -> Claim:
        known = self._ledger.row(self._place._replace(key=key))
        self._key = key
        if known is not None:
            return known.base
        began = day(self.run.state.started_at or None)
        return paid_elsewhere(self.run.state) if began == key else self._settled()


def _row_name(run: Borrower) -> str:
    above = run.parent
    return row_name(run.run_id, run.state.started_at, *(() if above is None else ((above.run_id, _row_name(above)),)))


def _money(claim: Claim) -> Claim:
    """The tokens and dollars of a claim: steps and tool calls are no matter of budgets."""
    return Claim(tokens=claim.tokens, usd=claim.usd)
