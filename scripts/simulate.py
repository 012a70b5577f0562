"""Simulates worlds in which processes die, stand still and get in each other's way, and counts what that has broken.

    python scripts/simulate.py --seeds 2000      the worlds of 2,000 seeds
    python scripts/simulate.py --seed 17         the world of one seed alone, told in full

Kernel, driver and the Journal port are the real ones; time, processes, models, tools and people are simulated
(`tests/simulate/`). All of it follows from the seed: the same seed does the same again, to the byte.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "simulate"))

from sim_story import KINDS, Verdict, judged, simulation
from sim_worlds import FEATURES

ROUND = 50
"""Seeds that a process does at a time."""

WIDTH = 180
"""Characters of a line of a story; what is longer is cut."""


def main() -> int:
    """Simulates as the command line says; 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2000, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="the one seed to simulate and tell about")
    parser.add_argument("--whole", action="store_true", help="with --seed: lines are not cut")
    parser.add_argument("--workers", type=int, default=min(2, multiprocessing.cpu_count()))
    given = parser.parse_args()
    if given.seed is not None:
        return told_in_full(given.seed, None if given.whole else WIDTH)
    begun, last = time.perf_counter(), given.first + given.seeds
    rounds = [range(first, min(first + ROUND, last)) for first in range(given.first, last, ROUND)]
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        verdicts = [one for some in pool.imap(verdicts_of, rounds) for one in some]
    return report(verdicts, time.perf_counter() - begun)


def verdicts_of(seeds: range) -> list[Verdict]:
    """What became of the worlds of some seeds."""
    with simulation():
        return list(map(partial(judged, traced=False), seeds))


def report(verdicts: list[Verdict], seconds: float) -> int:
    """Prints what was simulated, and the seeds of what was found; 0 if nothing was."""
    print(f"{'':16}{'worlds':>9}{'wrong':>9}")
    for feature in (*FEATURES, "all"):
        own = [one for one in verdicts if feature == "all" or feature in one.features]
        print(f"{feature:16}{len(own):9}{sum(bool(one.wrong) for one in own):9}")
    counts = sum((one.counts for one in verdicts), Counter[str]())
    print(f"\n{counts['runs']} runs, {counts['events']} events, {counts['effects']} effects in {seconds:.0f} s")
    print(", ".join(f"{counts[kind]} x {kind}" for kind in KINDS))
    bad = [one for one in verdicts if one.wrong]
    for one in bad:
        print(f"\nmake simulate SEED={one.seed}")
        print(*(f"    {what}" for what in one.wrong), sep="\n")
    return 1 if bad else 0


def told_in_full(seed: int, width: int | None) -> int:
    """Simulates one seed and tells its story; 0 if nothing was found."""
    with simulation():
        verdict = judged(seed, traced=True)
    for line in verdict.trace.decode().splitlines():
        print(line[:width])
    print(f"\n{len(verdict.wrong)} things are wrong with the world of seed {seed}", *verdict.wrong, sep="\n    ")
    print(f"\nTo see it again: make simulate SEED={seed}")
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
