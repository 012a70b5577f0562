"""Page of: how a long list is handed out in pages, each from where the one before ended."""

from typing import Annotated

from msgspec import Meta, Struct

from treadle.journal.info import RunInfo
from treadle.serve.refused import Refused


class Page(Struct, forbid_unknown_fields=True):
    """A page of a list.

    Attributes:
        limit: how many at most.
        before: the `next` of the page before.
    """

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    before: str | None = None


def place_of(before: str | None) -> tuple[float, str] | None:
    """The start and the id of the run that `next` says. Raises `Refused` if it says none."""
    if before is None:
        return None
    at, _, run_id = before.partition("_")
    try:
        return float(at), run_id
    except ValueError:
        raise Refused("unfit", "before takes the `next` of the page before") from None


def place_after(last: RunInfo | None) -> str | None:
    """What `next` says after a page that ends with `last`."""
    return None if last is None else f"{last.started_at!r}_{last.run_id}"
