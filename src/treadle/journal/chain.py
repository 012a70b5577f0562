"""The chain of a run's events: each carries a hash of itself and its predecessor, so that what was altered is seen.

A hash is BLAKE2b (RFC 7693) of 16 bytes: as fast as reading, and a chance alteration goes unseen once in 2**128. It has
no key: it finds what a disk, a program or a careless hand did, and not a forger, who can make all hashes anew.
"""

from hashlib import blake2b
from struct import Struct

SIZE = 16
"""Bytes of a hash."""


_packed = Struct("<d").pack

_begun = blake2b(digest_size=SIZE).copy
"""Gives a hash of nothing yet: to make one anew takes longer than to hash an event by it."""


def beginning(run_id: str) -> bytes:
    """What stands where the first event's predecessor would: the run's own, so that no event fits into another run."""
    return _hash(run_id.encode())


def link(before: bytes, at: float, body: bytes) -> bytes:
    """The hash of an event.

    Args:
        before: the hash of its predecessor; of the first event `beginning`.
        at: its time, as its row has it.
        body: its stored form.
    """
    made = _begun()
    made.update(before + _packed(at) + body)
    return made.digest()


def seal(head: bytes, line: bytes) -> bytes:
    """The hash of a run's line in the index, and of the last event's hash beside it."""
    return _hash(head + line)


def _hash(data: bytes) -> bytes:
    made = _begun()
    made.update(data)
    return made.digest()
