"""Posting: a request that begins a run, named so that the journal itself knows it when it comes again.

A client that lost its answer, or whose server died, asks again. From what it gave as the name of its request
(`Idempotency-Key`, AG-UI's `runId`), and the user, follows the id of the run, and a journal takes no second run of an
id: so it holds whichever server is asked, before and after a restart. What the request asked for stands in the run's
`origin`, as a digest, by which another request under the same name is told apart, and one without a name is found. What
is said to a run that there is already has an `origin` too, with the name.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from starlette.datastructures import Headers

from treadle.journal.info import SERVED
from treadle.journal.redaction import text_as_kept
from treadle.serve.refused import Refused

MOST_KEY: Final = 255
"""Characters of a key."""

AGAIN: Final = 1800.0
"""Seconds for which a request without a name is known again: clients try three times, for ten minutes each. Later the
same question is another one."""

_encoder = msgspec.json.Encoder(order="sorted", decimal_format="string", enc_hook=str)


class Posting(NamedTuple):
    """What names a request, and what it asked for.

    Attributes:
        run_id: of the run that it begins; None for one without a name.
        digest: of what it asks for; of a named one nobody makes it without the name. Empty for whatever it asks for.
        kept: whether the digest stands in the journal.
        message: what names the message that it says, whatever the words, where the name of the request has them too.
    """

    run_id: str | None
    digest: str
    kept: bool = True
    message: str = ""

    @property
    def origin(self) -> str:
        """The origin of the run that it begins."""
        return f"{SERVED} {self.digest}" if self.kept else SERVED

    @property
    def said(self) -> str:
        """The origin of what it says to a run that there is already."""
        return " ".join([one for one in (self.origin, self.message, self.run_id) if one])

    def is_named(self, origin: str) -> bool:
        """Whether what has this `said` came by the same name; of one without a name, whether it is the same."""
        return origin == self.said if self.run_id is None else origin.endswith(f" {self.run_id}")


def posting(
    user: str, names: tuple[str, ...] | None, asked: Any, redact: Callable[[str], str] | None = None
) -> Posting:
    """What names a request of `user`.

    Args:
        user: the user's name.
        names: what the client called it, and within what; None if it did not.
        asked: what it asks for.
        redact: what texts pass through before they are written, if they do. A secret could be guessed by its digest,
            and without it two requests would be one: so there the digest of one without a name is not kept.

    Raises:
        RedactionFailed: `redact` raised, or did not return a text.
    """
    text = _encoder.encode(asked).decode()
    if names is None:
        return Posting(None, hashlib.sha256(_encoder.encode([user, text])).hexdigest()[:32], kept=redact is None)
    key = _encoder.encode([user, *names])
    said = text_as_kept(text, redact).encode()
    return Posting(f"key-{hashlib.sha256(key).hexdigest()[:32]}", hmac.new(key, said, "sha256").hexdigest()[:32])


def key_of(headers: Headers) -> tuple[str, ...] | None:
    """An `Idempotency-Key`; None if there is none. Raises `Refused` if it is no name, or there are several."""
    found = set(headers.getlist("idempotency-key"))
    if not found:
        return None
    if len(found) > 1:
        raise Refused(
            "unfit",
            f"Idempotency-Key is given {len(found)} times, each time otherwise, and one of them alone would count",
            "Give it once; a proxy may have added its own.",
        )
    (given,) = found
    if not given.strip() or len(given) > MOST_KEY or not given.isprintable():
        raise Refused(
            "unfit",
            f"Idempotency-Key takes a text of 1 to {MOST_KEY} characters",
            "A UUID will do, a new one for each run.",
        )
    return ("idempotency-key", given)
