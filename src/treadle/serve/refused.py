"""Refused: what a caller may not have, as data: the kind of refusal, what happened, and what to do."""

from collections.abc import Awaitable, Mapping
from typing import Final, Literal, TypeVar

from treadle.journal import JournalConflict, JournalDamaged, JournalError, UnknownRun
from treadle.kernel.errors import Misuse

T = TypeVar("T")

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

    def to_dict(self) -> dict[str, dict[str, str]]:
        """The body of the response."""
        return {"error": {"kind": self.kind, "message": self.message, "advice": self.advice}}


def of_journal(error: JournalError) -> Refused:
    """What went wrong with the journal, as it may be told to a caller: no path and no other run's name."""
    if isinstance(error, UnknownRun):
        return Refused("not_found", "there is no such run")
    if isinstance(error, JournalConflict):
        return Refused(
            "conflict", "the run is driven elsewhere, or somebody else has just decided", "Look at it again."
        )
    if isinstance(error, JournalDamaged):
        return Refused("conflict", "the run is damaged and cannot be read", "Whoever runs the server can repair it.")
    return Refused("unavailable", "the journal cannot be used now", "Try again later.", 5)


TROUBLE: Final = (Refused, JournalError)
"""What a route tells of in its protocol's own form: the journal may be away at any look at it."""


def refused_by(error: Refused | JournalError) -> Refused:
    """What a caller is told of trouble."""
    return error if isinstance(error, Refused) else of_journal(error)


async def kept(done: Awaitable[T]) -> T:
    """What was asked of the library, with its errors as refusals."""
    try:
        return await done
    except JournalError as error:
        raise of_journal(error) from error
    except Misuse as error:
        raise Refused("unfit", str(error)) from error
