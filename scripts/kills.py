"""Kills real processes at random moments of runs, takes the runs up again, and counts what that has cost: nothing.

    python scripts/kills.py --kills 60          until 60 processes have been killed
    python scripts/kills.py --seed 17           the run of one seed alone, told in full

Each seed is a run of its own: agents, tools, models and the moments of death follow from it (`tests/kills/`). Where a
process is killed at an append or at an effect, a seed does the same again; where it is killed after some time, nearly.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "kills"))

from kill_audit import QUESTIONS, Findings, audit
from kill_life import Life, lived
from kill_stage import Plan
from kill_worlds import FEATURES, World

ROUND = 12
"""Runs between two looks at whether there were kills enough."""

Told = tuple[int, list[str], list[Plan], dict[str, list[str]]]
"""What is kept of one run: its seed, its features, the deaths in it, and what was found."""


def main() -> int:
    """Runs as the command line says; 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=60, help="how many processes are to be killed")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="the one seed to run and tell about")
    parser.add_argument("--workers", type=int, default=min(2, multiprocessing.cpu_count()))
    given = parser.parse_args()
    if given.seed is not None:
        return told_in_full(given.seed)
    begun, runs = time.perf_counter(), list[Told]()
    with multiprocessing.get_context("fork").Pool(given.workers) as pool:
        while sum(len(deaths) for _, _, deaths, _ in runs) < given.kills:
            seeds = range(given.first + len(runs), given.first + len(runs) + ROUND)
            runs.extend(islice(pool.imap_unordered(one_run, seeds), ROUND))
    return report(runs, time.perf_counter() - begun)


def one_run(seed: int) -> Told:
    """One run, undisturbed and then killed."""
    world, life, findings = examined(seed)
    return seed, world.features, life.deaths, findings.found


def examined(seed: int) -> tuple[World, Life, Findings]:
    """The world of a seed, what became of its run, and what was found."""
    world = World.of(seed)
    undisturbed = lived(world)
    if not undisturbed.outcome or undisturbed.outcome["reason"] != "answered":
        findings = Findings()
        findings.add("lost", f"even undisturbed: {undisturbed.outcome or undisturbed.faults}")
        return world, undisturbed, findings
    life = lived(world, undisturbed)
    return world, life, audit(life, undisturbed)


def report(runs: list[Told], seconds: float) -> int:
    """Prints the table, and the seeds of what was found; 0 if nothing was."""
    print(f"{'':22}{'runs':>7}{'kills':>7}" + "".join(f"{one:>13}" for one in QUESTIONS))
    for feature in (*FEATURES, "all"):
        own = [run for run in runs if feature == "all" or feature in run[1]]
        row(feature, own)
    deaths = Counter((plan.moment, plan.where) for run in runs for plan in run[2])
    moments = ", ".join(f"{count} {where} {moment}" if where else f"{count} by {moment}"
                        for (moment, where), count in sorted(deaths.items()))  # fmt: skip
    print(f"\nkills: {moments}; {seconds:.0f} s")
    bad = [run for run in runs if any(run[3].values())]
    for seed, _, _, found in bad:
        print(f"\nmake kills SEED={seed}")
        for question, sentence in ((one, sentence) for one in QUESTIONS for sentence in found[one]):
            # The last line of a traceback is the one that says what was wrong.
            print(f"    {question}: {sentence.strip().splitlines()[-1]}")
    return 1 if bad else 0


def row(name: str, runs: list[Told]) -> None:
    """Prints a line of the table."""
    kills = sum(len(run[2]) for run in runs)
    counts = [sum(len(run[3][one]) for run in runs) for one in QUESTIONS]
    print(f"{name:22}{len(runs):7}{kills:7}" + "".join(f"{count:13}" for count in counts))


def told_in_full(seed: int) -> int:
    """Runs one seed and prints all that happened; 0 if nothing was found."""
    world, life, findings = examined(seed)
    print(world.top, *life.deaths, sep="\n")
    for run_id, events in life.before[-1].items():
        print(f"\nrun {run_id}")
        for number, event in enumerate(events):
            begun = next(
                i for i, one in enumerate([*life.before, {run_id: events}]) if number < len(one.get(run_id, ()))
            )
            print(f"  in process {begun}  {str(event)[:200]}")
    print("\nledger", *map(json.dumps, life.ledger), sep="\n  ")
    print(f"\nended: {life.outcome}")
    for question, sentences in findings.found.items():
        for sentence in sentences:
            print(f"{question}: {sentence}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
