"""The chain of a run's events: each carries a hash of itself and its predecessor, so that what was altered is seen.

A hash is BLAKE2b (RFC 7693) of 16 bytes: as fast as reading, and a chance alteration goes unseen once in 2**128. It has
no key: it finds what a disk, a program or a careless hand did, and not a forger, who can make all hashes anew.
"""

from hashlib import blake2b
from struct import Struct

SIZE = 16
"""Bytes of a hash."""


_packed = Struct("<d").pack


def beginning(run_id: str) -> bytes:
    """What stands where the first event's predecessor would: the run's own, so that no event fits into another run."""
    return blake2b(run_id.encode(), digest_size=SIZE).digest()


def link(before: bytes, at: float, body: bytes) -> bytes:
    """The hash of an event.

    Args:
        before: the hash of its predecessor; of the first event `beginning`.
        at: its time, as its row has it.
        body: its stored form.
    """
    return blake2b(before + _packed(at) + body, digest_size=SIZE).digest()


def seal(head: bytes, line: bytes) -> bytes:
    """The hash of a run's line in the index, and of the last event's hash beside it."""
    return blake2b(head + line, digest_size=SIZE).digest()
