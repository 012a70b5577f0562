"""Budget: tokens and dollars that several runs share: all of them, or those of a user, a conversation or a day."""

import inspect
import logging
from collections.abc import Callable, Iterable
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Never, get_args

from msgspec import Struct

from treadle.carried import stays_here
from treadle.drivers.approvals import BUDGET
from treadle.drivers.clock import day
from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.ledger import Ledger, Most
from treadle.drivers.purse.patience import outside
from treadle.drivers.purse.reckoning import Reached
from treadle.drivers.purse.rows import Mark, Store, Sums
from treadle.drivers.purse.sqlite_rows import SqliteRows
from treadle.journal.addresses import fault_in, in_postgres, named_file
from treadle.kernel.errors import Misuse
from treadle.kernel.money import MOST, NOTHING, dollars, minus, over, times
from treadle.kernel.stop import Stop, counted
from treadle.tools.errors import did_you_mean, nearest

log = logging.getLogger("treadle")

Per = Literal["run", "conversation", "user", "day"]

SCHEMA: Final = "treadle"
"""Where its tables are in a database, unless something else is said."""

MOST_TOKENS: Final = 2**53
"""More tokens than a budget is about; a number above it is a mistake."""


class Balance(Struct, frozen=True):
    """What was taken of one purse of a budget, and what is left.

    Attributes:
        key: whose purse it is: a user's name, the name of a conversation (at a server the user's and its own,
            "anna/chat"), a day such as "2026-11-22", a run's id; empty where all runs share one.
        tokens, usd: what was used. A reply whose price is not known counts as what was set aside for it.
        held_tokens, held_usd: what is set aside beside that, for calls under way. After a crash it stands until the run
            is taken up again: the call may have been paid for.
        left_tokens, left_usd: what calls may still take; None without such a limit. Never below zero.
    """

    key: str
    tokens: int
    usd: Decimal
    held_tokens: int
    held_usd: Decimal
    left_tokens: int | None
    left_usd: Decimal | None


class Budget:
    """What runs may take together at most, in dollars, in tokens or in both.

    Give it to an agent, for all of its runs, or to a run: `Agent(…, budget=…)`, `agent.run(…, budget=…)`; several as a
    list, and all of them must agree. Before each model call its worst case is set aside here, and a call that does not
    fit is not made: the run ends with `max_cost` or `max_tokens`. What runs of other agents take for a run that they
    work for counts too.

    Args:
        usd: dollars. The price of each model must be known.
        tokens: input and output tokens.
        per: what has a purse of its own: each "run", "conversation" (`run(…, conversation=…)`), "user" (`run(…,
            user="anna")`) or "day" (by UTC; a run over midnight counts each call on the day on which it was begun).
            None is one purse for all.
        name: what it is called. Budgets in one file share their purses if they have the same name and the same `per`;
            what each allows may differ.
        path: where its purses are, which processes share: an SQLite file on a local disk, or for processes on several
            machines a PostgreSQL database, as `postgresql://user:password@host:port/database`; both are made ready
            when they are first used. They hold names, tokens and dollars, and nothing that was said. None keeps the
            purses in this object, for the runs of this process that are given it, in whatever threads they are.
        schema: in a database, the schema with its tables, which may be a journal's; None for `treadle`, the journal's
            own default.
        warn: shares, such as `(0.5, 0.9)`. When so much is used it is told once for each purse, whatever the number of
            processes: the logger `treadle` warns, and `on_warning` is called.
        on_warning: a plain function that is called with the share and the `Balance`. What it raises is logged.

    Raises:
        Misuse: something does not fit; the message says what would.
    """

    def __init__(
        self,
        *,
        usd: Decimal | float | None = None,
        tokens: int | None = None,
        per: Per | None = None,
        name: str = "",
        path: str | PathLike[str] | None = None,
        schema: str | None = None,
        warn: Iterable[float] = (),
        on_warning: Callable[[float, Balance], object] | None = None,
        **unknown: Never,
    ) -> None:
        for word in unknown:
            known = tuple(inspect.signature(Budget).parameters)[:-1]
            raise Misuse(f"Budget takes no argument {word!r}{did_you_mean(nearest(word, known))}")
        if per is not None and per not in get_args(Per):
            raise Misuse(
                f"Budget takes per= as one of {', '.join(map(repr, get_args(Per)))}; it was given {per!r:.100}"
            )
        self.most = _most(usd, tokens)
        self.per = per
        self.name = checked_name("Budget(name=…)", name, may_be_empty=True)
        database = _database(path, schema)
        self.path = _file(path) if database is None else None
        self.ledger = Ledger(SqliteRows(self.path) if database is None else database)
        self.marks = {mark: share for share in _shares(warn) for mark in self._marks(share)}
        if on_warning is not None and (not callable(on_warning) or inspect.iscoroutinefunction(on_warning)):
            raise Misuse(
                f"on_warning takes a plain function of a share and a Balance; it was given {on_warning!r:.100}"
            )
        if on_warning is not None and not self.marks:
            raise Misuse("on_warning is called when shares are used: say which, such as warn=(0.5, 0.9)")
        self._on_warning = on_warning

    def __reduce__(self) -> Never:
        stays_here(self, "its purses are here; processes share them by Budget(…, name=…, path=…), made in each")

    @property
    def usd(self) -> Decimal | None:
        """The dollars that each purse has."""
        return self.most.usd

    @property
    def tokens(self) -> int | None:
        """The tokens that each purse has."""
        return self.most.tokens

    @property
    def series(self) -> str:
        """What its purses are called where those of several budgets are kept in one place."""
        return f"{self.per or 'all'} {self.name}".rstrip()

    @property
    def hook(self) -> str:
        """What stands in a journal of a run that draws on it."""
        return f"{BUDGET} {self.series}"

    def row_of(self, run_id: str, name: str) -> str:
        """What the rows of a run are called that has this `row_name`.

        A purse that an id has is that of the run that has the id: it begins with nothing, whatever another one took.
        """
        return run_id if self.per == "run" else name

    def spent(self, key: str | None = None) -> Balance:
        """What was taken of one of its purses, by whatever process.

        Args:
            key: whose: the name of the user or conversation, the id of the run, the day; today if none is given. The
                purse of a budget that all share needs none; in `purses()` its key is empty.

        Raises:
            Misuse: it does not say whose.
            BudgetUnavailable: the file or database cannot be used.
        """
        if self.per is None and key:
            raise Misuse(f"all share this budget, and nobody has a purse of their own: spent(), and not spent({key!r})")
        if self.per == "day" and key is None:
            key = day()
        if self.per is not None and not isinstance(key, str):
            raise Misuse(f"spent takes whose purse is meant, a {self.per} (see purses()); it was given {key!r:.100}")
        return self.balance(key or "", outside(lambda: self.ledger.sums(self.series, key or "")))

    def purses(self) -> list[str]:
        """Whose purses there are: the keys of all that a run was ever begun for, sorted.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        return outside(lambda: self.ledger.keys(self.series))

    def close(self) -> None:
        """Lets go of its place until the budget is used again, as do the end of the program and of this object."""
        self.ledger.close()

    def __repr__(self) -> str:
        path, schema = self.ledger.store.where or None, None
        if path is not None and self.path is None:
            path, schema = path.rsplit(", schema ", 1)
        given = {"usd": self.usd, "tokens": self.tokens, "per": self.per, "name": self.name or None, "path": path}
        given["schema"] = schema
        shown = {name: value if name == "usd" else repr(value) for name, value in given.items() if value is not None}
        return f"Budget({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def balance(self, key: str, sums: Sums) -> Balance:
        """The `sums` of one of its purses, as a person asks for them."""
        used, held = sums.used, sums.claimed - sums.used
        tokens = None if self.tokens is None else max(0, self.tokens - sums.claimed.tokens)
        usd = None if self.usd is None else max(NOTHING, _plain(minus(self.usd, sums.claimed.usd)))
        held_usd = max(NOTHING, _plain(held.usd))
        return Balance(key, used.tokens, _plain(used.usd), max(0, held.tokens), held_usd, tokens, usd)

    def refusal(self, key: str, others: Claim, own: Claim, worst: Claim) -> Stop:
        """Why a call that would take `worst` is not made, where `others` have claimed that much, and the run `own`."""
        taken = others + own
        if self.usd is not None and (taken + worst).usd > self.usd:
            return self._stop("max_cost", key, taken, f"the next call may cost {_plain(worst.usd)}")
        return self._stop("max_tokens", key, taken, f"the next call may take {worst.tokens}")

    def used_up(self, key: str, reason: Reached, taken: Claim) -> Stop:
        """Why a run is to come to its end, where only a closing reply can still be paid."""
        return self._stop(reason, key, taken, "what is left is kept for a closing reply")

    def unpriced(self, key: str) -> Stop:
        """Why a call whose price is not known is not made."""
        return Stop(
            "max_cost", f"{self._called(key)}: the price of the next call is not known.", "Give the model a price."
        )

    def _stop(self, reason: Reached, key: str, taken: Claim, why: str) -> Stop:
        if reason == "max_cost":
            what = f"{_plain(taken.usd)} of {counted(self.usd, 'dollar')}"
            remedy = f"raise Budget(usd=…), now {self.usd}, or use a cheaper model."
        else:
            what, remedy = f"{taken.tokens} of {self.tokens} tokens", f"raise Budget(tokens=…), now {self.tokens}."
        advice = f"go on after midnight UTC, or {remedy}" if self.per == "day" else remedy
        return Stop(reason, f"{self._called(key)}: {what} are taken, and {why}.", advice[0].upper() + advice[1:])

    @property
    def called(self) -> str:
        """How it is spoken of to whoever has a run begun, and need not know where it is kept."""
        return f"the budget {self.name!r}" if self.name else "the budget"

    def _called(self, key: str) -> str:
        """How a purse of it is spoken of."""
        return f"{self.called} of {self.per} {key}" if self.per else f"{self.called} that runs share"

    def tell(self, mark: Mark, spent: Balance) -> None:
        """Warns that so much is used."""
        share = self.marks[mark]
        whole = counted(self.usd, "dollar") if mark.tokens is None else f"{self.tokens} tokens"
        of = f"{spent.usd if mark.tokens is None else spent.tokens} of {whole}"
        log.warning("%s: %s are used, which is %g %% or more", self._called(spent.key), of, share * 100)
        if self._on_warning is not None:
            try:
                self._on_warning(share, spent)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:
                # It is a plain function: a cancellation can only be its own, and `sys.exit` is not for a run to follow.
                log.exception("on_warning of %r raised; the run goes on", self)

    def _marks(self, share: float) -> Iterable[Mark]:
        if self.usd is not None:
            yield Mark(None, _part(self.usd, share))
        if self.tokens is not None:
            yield Mark(int(_part(Decimal(self.tokens), share).to_integral_value("ROUND_CEILING")), None)


def _plain(usd: Decimal) -> Decimal:
    """`usd` without zeros at its end."""
    text = f"{usd:f}"
    return Decimal(text.rstrip("0").rstrip(".")) if "." in text else usd


def checked_name(where: str, name: object, *, may_be_empty: bool = False) -> str:
    """`name`, if it is a text that a file takes."""
    if isinstance(name, str) and (name or may_be_empty):
        try:
            name.encode()
        except UnicodeEncodeError:
            pass
        else:
            return str.__str__(name)
    raise Misuse(f"{where} takes a text{'' if may_be_empty else ' that is not empty'}; it was given {name!r:.100}")


def _most(usd: object, tokens: object) -> Most:
    if usd is None and tokens is None:
        raise Misuse("Budget takes dollars or tokens, or both: Budget(usd=5), Budget(tokens=1_000_000)")
    exact = None if usd is None else dollars(usd)
    if usd is not None and exact is None:
        raise Misuse(f"Budget takes usd= as a number of dollars from 0 to {MOST:,}; it was given {usd!r:.100}")
    if tokens is None:
        return Most(None, exact)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= MOST_TOKENS:
        raise Misuse(f"Budget takes tokens= as a whole number from 0 to {MOST_TOKENS:,}; it was given {tokens!r:.100}")
    return Most(int(tokens), exact)


def _shares(warn: Any) -> list[float]:
    shares: list[float] = []
    for share in warn if isinstance(warn, Iterable) and not isinstance(warn, str) else [None]:
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
            raise Misuse(
                f"Budget takes warn= as shares above 0 and up to 1, such as (0.5, 0.9); it was given {warn!r:.100}"
            )
        shares.append(float(share))
    return shares


def _part(whole: Decimal, share: float) -> Decimal:
    """`share` of `whole`, the share taken as it is written."""
    top, bottom = Decimal(repr(float(share))).as_integer_ratio()
    return over(times(whole, top), bottom)


def _database(path: Any, schema: str | None) -> Store | None:
    """The place in PostgreSQL that `path` names, if it names one."""
    named = path if isinstance(path, str) else str(path) if isinstance(path, PathLike) else ""
    if not in_postgres(named):
        # It may have a password in it, and a file of such a name would have it too.
        if fault_in(named):
            raise Misuse(
                "Budget takes path= as the path of a file, or as postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
            )
        if schema is not None:
            raise Misuse("Budget takes schema= beside the address of a database alone: path='postgresql://…'")
        return None
    try:
        from treadle.drivers.purse.postgres_rows import PostgresRows
        from treadle.journal.postgres.address import address_of
    except ImportError as error:
        raise Misuse("a budget in PostgreSQL needs psycopg: pip install 'treadle[postgres]'") from error
    return PostgresRows(address_of(named, SCHEMA if schema is None else str(schema)))


def _file(path: Any) -> Path | None:
    if path is None:
        return None
    given = named_file(path)
    if given is None:
        raise Misuse(f"Budget takes path= as the path of a file, or None for one in memory; it was given {path!r:.100}")
    # One file by whatever name: a run and one that works for it must not count twice.
    return Path(given).absolute().resolve()
