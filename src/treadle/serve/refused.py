"""Refused: what a caller may not have, as data: the kind of refusal, what happened, and what to do."""

import logging
from collections.abc import Awaitable, Mapping
from typing import Final, Literal, TypeVar

from msgspec import Struct

from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.journal import JournalConflict, JournalDamaged, JournalError, RedactionFailed, RunHeld, UnknownRun
from treadle.kernel.errors import Misuse

T = TypeVar("T")

log = logging.getLogger("treadle.serve")

Kind = Literal[
    "bad_request",
    "unauthorised",
    "forbidden",
    "not_found",
    "not_allowed",
    "conflict",
    "too_large",
    "wrong_type",
    "misdirected",
    "unfit",
    "too_many",
    "internal",
    "unavailable",
]

STATUS: Final[Mapping[Kind, int]] = {
    "bad_request": 400,
    "unauthorised": 401,
    "forbidden": 403,
    "not_found": 404,
    "not_allowed": 405,
    "conflict": 409,
    "too_large": 413,
    "wrong_type": 415,
    "misdirected": 421,
    "unfit": 422,
    "too_many": 429,
    "internal": 500,
    "unavailable": 503,
}
"""The HTTP status of each kind."""


class Why(Struct, frozen=True):
    """What kind of refusal it is, what happened, and what to do, which may be empty."""

    kind: Kind
    message: str
    advice: str


class Refusal(Struct, frozen=True):
    """The body of the response to what is refused."""

    error: Why


class Refused(Exception):
    """Something is refused, and nothing of it was done.

    Attributes:
        kind: one of `Kind`, which has its HTTP status in `STATUS`.
        message: what happened, for a person.
        advice: what to do; empty if nothing can be said.
        after: seconds after which it may be tried again, if that is known.
    """

    def __init__(self, kind: Kind, message: str, advice: str = "", after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.advice, self.after = kind, message, advice, after

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.kind]

    @property
    def words(self) -> str:
        """What happened and what to do, in one line."""
        return f"{self.message}. {self.advice}" if self.advice else self.message

    @property
    def why(self) -> Why:
        """Why, as data."""
        return Why(self.kind, self.message, self.advice)


def stopping() -> Refused:
    """What whoever follows a run is told where the server stops: neither has ended."""
    return Refused("unavailable", "the server is stopping", "The run is kept, and goes on when it is back.", 5)


def of_journal(error: JournalError) -> Refused:
    """What went wrong with the journal, as it may be told to a caller: no path and no other run's name."""
    if isinstance(error, UnknownRun):
        return Refused("not_found", "there is no such run")
    if isinstance(error, RunHeld):
        # Nobody's name is known where it is another task of this process.
        where = "in this server" if error.holder is None else "elsewhere"
        return Refused("conflict", f"the run is under way {where}", "Follow it, or cancel it first.")
    if isinstance(error, JournalConflict):
        if error.found == 0:
            return Refused("not_found", "the run was deleted meanwhile")
        return Refused(
            "conflict", "the run has gone on elsewhere, or somebody else has just decided", "Look at it again."
        )
    if isinstance(error, JournalDamaged):
        return Refused("conflict", "the run is damaged and cannot be read", "Whoever runs the server can repair it.")
    if isinstance(error, RedactionFailed):
        # A mistake of the application's, which asking again does not mend and who asks cannot see.
        log.error("a request failed: %s", error)
        return Refused(
            "internal", "the journal's redact function failed", "Whoever runs the server finds it in its log."
        )
    # Why, and what to do, is for whoever runs the server alone, who has no other place to read it.
    log.error("a request failed: %s", error)
    return Refused("unavailable", "the journal cannot be used now", "Try again later.", 5)


TROUBLE: Final = (Refused, JournalError, BudgetUnavailable)
"""What a route tells of in its protocol's own form: the journal, or a budget, may be away at any look at it."""


def refused_by(error: Refused | JournalError | BudgetUnavailable) -> Refused:
    """What a caller is told of trouble."""
    if isinstance(error, BudgetUnavailable):
        log.error("a request failed: %s", error)
        return Refused("unavailable", "a budget cannot be used now", "Try again later.", 5)
    return error if isinstance(error, Refused) else of_journal(error)


async def kept(done: Awaitable[T]) -> T:
    """What was asked of the library, with its errors as refusals."""
    try:
        return await done
    except JournalError as error:
        raise of_journal(error) from error
    except Misuse as error:
        raise Refused("unfit", str(error)) from error
