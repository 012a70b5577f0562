"""One seed: its world carried out and audited, its trace, and the story that a person reads of it."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sim_audit import audited
from sim_clock import simulated_time
from sim_deployment import Deployment
from sim_leases import simulated_leases

SELDOM = ("decides too", "deletes")
KINDS = (
    "dies", "stands still", "FAULT", "has lost", "conflicts", "is upset", "is cancelled", "has its clock set", "forks",
    "is to end", "is to watch", "aborts", "decides on other arguments", *SELDOM,
)  # fmt: skip
"""What goes wrong in a world, as its trace has it; and what of it no hundred worlds need have."""


class Verdict(NamedTuple):
    """What is kept of one seed.

    Attributes:
        seed: the seed.
        features: what its world has of what can be met.
        wrong: what may not happen, and did.
        counts: how often each thing went wrong that may, and how much was done.
        trace: all that happened, as bytes.
    """

    seed: int
    features: list[str]
    wrong: list[str]
    counts: Counter[str]
    trace: bytes = b""


@contextmanager
def simulation() -> Iterator[None]:
    """Around the worlds of any number of seeds: treadle has their time, and says nothing."""
    log = logging.getLogger("treadle")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with simulated_time(), simulated_leases():
            yield
    finally:
        log.setLevel(level)


def judged(seed: int, traced: bool = False) -> Verdict:
    """The world of a seed, carried out and audited; within `simulation`."""
    world = Deployment(seed).carry_out()
    try:
        wrong = list(audited(world))
        counts = Counter(what for _, _, what, _ in world.stage.trace if what in KINDS)
        counts["effects"], counts["runs"] = len(world.outside.effects), len(world.store.runs)
        counts["events"] = sum(map(len, world.store.runs.values()))
        trace = "\n".join(lines(world)).encode() if traced else b""
        return Verdict(seed, world.world.features, wrong, counts, trace)
    finally:
        world.bury()


def lines(world: Deployment) -> Iterator[str]:
    """The story of a world, a line for each thing that happened."""
    yield f"seed {world.stage.seed}: {', '.join(world.world.features)}"
    yield str(world.stage.weather)
    yield str(world.world.top)
    yield ""
    for at, who, what, more in world.stage.trace:
        yield f"{at:10.6f} {who:6} {what:34} {_shown(more)}".rstrip()


def _shown(more: Any) -> str:
    return more.decode() if isinstance(more, bytes) else str(more)
