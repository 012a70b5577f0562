"""What a comparison costs: treadle beside the same work in raw SQL, Polars, pandas, datacompy and Pointblank.

    python bench/compare.py                                  # 1 million rows a side, into 2,400 and into 680,000 groups
    python bench/compare.py --rows 10000000 --groups 6800000 --memory 500MB
    python bench/compare.py --only treadle,raw --repeat 5
    python bench/compare.py --only raw_csv,treadle_csv,treadle_formats,raw_german,treadle_german
    python bench/compare.py --rows 5000000 --groups 5000000 --memory 700MB --only treadle,treadle_export
    python bench/compare.py --rows 10000000 --groups 10000000 --only raw_keyed,join_keyed,treadle_keyed

Two Parquet files are made once (kept under --folder). Each contender runs in a process of its own and does the same:
sum both files per key, align them, class every key (match, minor, major, missing), add up, and find the 20 largest
differences. Told are the CPU seconds of that work without imports (the least of --repeat runs, all in turns), the
process's peak memory, both as multiples of the first contender, the raw SQL, and the median of the multiples of all
turns. The raw SQL is lean: it does not look for what treadle tells besides
(which values of each dimension carry the differences, values that one side lacks, patterns, duplicate rows).
pandas, datacompy and Pointblank work with floats, the others with exact decimals. A contender whose package is missing
is shown as not installed. All found the same, or it says so.

Those of CSV read the same rows as text: raw_csv and treadle_csv with a decimal point, treadle_formats the same file
with the formats that `treadle sources init` proposes for its keys; raw_german and treadle_german with `1.234,56`.
treadle_export is treadle that writes all keys to a Parquet and a CSV file.

Those called keyed read the same rows from DuckDB files whose tables have the key as their primary key, so that a join
of the two (join_keyed) finds what the aggregate (raw_keyed) does; for them there must be as many groups as rows.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

KEYS = ["company", "account"]
Counts = dict[str, int]


def make(folder: Path, rows: int, groups: int) -> None:
    """Two files: B is A with every 50th group a little off, every 500th far off, and every 1,000th missing."""
    import duckdb

    for side in "ab":
        path = folder / f"{side}.parquet"
        if path.exists():
            continue
        group = f"((i * 2654435761) % {groups})"
        amount = "((i * 7919) % 2000000 - 500000)::DECIMAL(18, 2) / 100"
        if side == "b":
            amount = (
                f"{amount} + CASE WHEN i < {groups} AND {group} % 500 = 1 THEN 90000 "
                f"WHEN i < {groups} AND {group} % 50 = 1 THEN 0.02 ELSE 0 END"
            )
        where = f"WHERE {group} % 1000 <> 7" if side == "b" else ""
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT printf('%06d', {group} // 100) AS company, printf('%06d', {group} % 100) AS account, "
                f"({amount})::DECIMAL(18, 2) AS amount FROM range({rows}) AS t(i) {where}) "
                f"TO '{path}.part' (FORMAT parquet)"
            )
        path.with_name(f"{path.name}.part").rename(path)


def make_keyed(folder: Path) -> None:
    """The same two tables in DuckDB files, held to their keys."""
    import duckdb

    for side in "ab":
        path = folder / f"{side}.duckdb"
        if not path.exists():
            part = path.with_name(f"{path.name}.part")
            part.unlink(missing_ok=True)
            with duckdb.connect(str(part)) as connection:
                connection.execute(
                    "CREATE TABLE rows (company VARCHAR, account VARCHAR, amount DECIMAL(18, 2), "
                    "PRIMARY KEY (company, account))"
                )
                connection.execute(f"INSERT INTO rows FROM '{folder / side}.parquet'")
            part.rename(path)


def make_text(folder: Path) -> None:
    """The same two tables as CSV: with a decimal point, and as German programs write them."""
    import duckdb

    german = "replace(replace(replace(format('{:,.2f}', amount), ',', '_'), '.', ','), '_', '.') AS amount"
    for side in "ab":
        for ending, amount, options in (("csv", "amount", ""), ("german.csv", german, ", DELIMITER ';', QUOTE ''")):
            path = folder / f"{side}.{ending}"
            if not path.exists():
                part = path.with_name(f"{path.name}.part")
                with duckdb.connect() as connection:
                    connection.execute(
                        f"COPY (SELECT company, account, {amount} FROM '{folder / side}.parquet') "
                        f"TO '{part}' (FORMAT csv, HEADER true{options})"
                    )
                part.rename(path)


def treadle(
    folder: Path, memory: str, kind: str = "parquet", ending: str = "", alpha: bool = False, exports: tuple = ()
) -> Callable[[], Counts]:
    """The engine, as a user calls it."""
    from treadle.analyst import Bounds, Catalog, CompareRequest, Dimension, Measure, Source, TextFormat, compare
    from treadle.analyst.declared.formats import Format, parse_format

    german = TextFormat(delimiter=";", decimal=",", thousands=".")
    form = parse_format("alpha(6)") if alpha else Format()
    sources = [
        Source(
            name=side,
            kind=kind,
            path=f"{side}.{ending or kind}",
            table="rows" if kind == "duckdb" else "",
            text=german if ending == "german.csv" else TextFormat(),
            dimensions=tuple(Dimension(name=name, format=form) for name in KEYS),
            measures=(Measure(name="amount", decimals=2),),
        )
        for side in "ab"
    ]
    import duckdb  # noqa: F401
    import sqlglot.dialects.duckdb  # noqa: F401

    def work() -> Counts:
        request = CompareRequest(source_a="a", source_b="b", dimensions=KEYS, keep=0)
        bounds = Bounds(memory=memory, seconds=3600)
        found = compare(Catalog(sources, folder), request, bounds=bounds, exports=[folder / name for name in exports])
        found = found.summary
        return {
            "keys": found.total_rows,
            "match": found.matches,
            "minor_diff": found.minor_differences,
            "major_diff": found.major_differences,
            "missing": found.missing_in_a + found.missing_in_b,
        }

    return work


CLASSES = """*, a - b AS d, CASE
    WHEN nb = 0 OR na = 0 THEN 'missing' WHEN abs(a - b) <= 0.01 THEN 'match'
    WHEN abs(a - b) < 5000 AND abs(a - b) * 100 < abs(a) THEN 'minor_diff' ELSE 'major_diff' END AS s"""

TYPES = "{{'company': 'VARCHAR', 'account': 'VARCHAR', 'amount': 'DECIMAL(18, 2)'}}"
TEXT = {
    "csv": f"read_csv('{{path}}', auto_detect = false, header = true, delim = ',', columns = {TYPES})",
    "german.csv": "read_csv('{path}', auto_detect = false, header = true, delim = ';', thousands = '.', "
    f"decimal_separator = ',', columns = {TYPES})",
}
"""How one has the engine read the amounts of text, where no value has more than two decimals."""

GROUPED = """
    SELECT company, account, count(na) AS na, count(nb) AS nb, coalesce(sum(va), 0) AS a, coalesce(sum(vb), 0) AS b
    FROM (SELECT company, account, amount AS va, 1 AS na, NULL AS vb, NULL AS nb FROM {a}
          UNION ALL SELECT company, account, NULL, NULL, amount, 1 FROM {b})
    GROUP BY company, account"""

JOINED = """
    SELECT coalesce(x.company, y.company) AS company, coalesce(x.account, y.account) AS account,
           (x.company IS NOT NULL)::INT AS na, (y.company IS NOT NULL)::INT AS nb,
           coalesce(x.amount, 0) AS a, coalesce(y.amount, 0) AS b
    FROM {a} x FULL JOIN {b} y ON x.company = y.company AND x.account = y.account"""


def raw(folder: Path, memory: str, rows: str = GROUPED, kind: str = "parquet") -> Callable[[], Counts]:
    """What one writes by hand: one UNION ALL and one conditional GROUP BY, then counts and the top 20."""
    import duckdb

    def work() -> Counts:
        with duckdb.connect() as connection, tempfile.TemporaryDirectory() as spill:
            connection.execute(f"SET memory_limit = '{memory}'")
            connection.execute(f"SET temp_directory = '{spill}'")
            names = {side: f"'{folder}/{side}.parquet'" for side in "ab"}
            if kind in TEXT:
                names = {side: TEXT[kind].format(path=f"{folder}/{side}.{kind}") for side in "ab"}
            if kind == "duckdb":
                for side in "ab":
                    connection.execute(f"ATTACH '{folder}/{side}.duckdb' AS db_{side} (READ_ONLY)")
                    names[side] = f"db_{side}.rows"
            connection.execute(f"CREATE TABLE aligned AS SELECT {CLASSES} FROM ({rows.format(**names)})")
            counts = connection.execute("SELECT s, count(*), sum(a), sum(b) FROM aligned GROUP BY s").fetchall()
            order = "s = 'match', abs(d) DESC, company, account"
            connection.execute(f"SELECT * FROM aligned ORDER BY {order} LIMIT 20").fetchall()
        return {"keys": sum(row[1] for row in counts)} | {row[0]: row[1] for row in counts}

    return work


def polars(folder: Path, memory: str) -> Callable[[], Counts]:
    """Lazy frames, streamed, with decimals."""
    import polars as pl

    def work() -> Counts:
        sides = [
            pl.scan_parquet(folder / f"{side}.parquet").group_by(KEYS).agg(pl.col("amount").sum().alias(side))
            for side in "ab"
        ]
        gap = (pl.col("a").fill_null(0) - pl.col("b").fill_null(0)).alias("d")
        joined = sides[0].join(sides[1], on=KEYS, how="full", coalesce=True).with_columns(gap)
        size = pl.col("d").abs()
        small = (size < 5000) & (size * 100 < pl.col("a").abs())
        classes = (
            pl.when(pl.col("a").is_null() | pl.col("b").is_null())
            .then(pl.lit("missing"))
            .when(size <= pl.lit("0.01").str.to_decimal(scale=2))
            .then(pl.lit("match"))
            .when(small)
            .then(pl.lit("minor_diff"))
            .otherwise(pl.lit("major_diff"))
        )
        table = joined.with_columns(classes.alias("s")).collect(engine="streaming")
        counts = table.group_by("s").agg(pl.len(), pl.col("a").sum(), pl.col("b").sum())
        table.with_columns(size.alias("size")).filter(pl.col("s") != "match").top_k(20, by="size")
        return {"keys": table.height} | dict(zip(counts["s"].to_list(), counts["len"].to_list(), strict=True))

    return work


def pandas(folder: Path, memory: str) -> Callable[[], Counts]:
    """groupby, an outer merge, numpy for the classes."""
    import numpy as np
    import pandas as pd

    def work() -> Counts:
        a, b = _pandas_sides(folder)
        table = a.merge(b, on=KEYS, how="outer", suffixes=("_a", "_b"))
        x, y = table["amount_a"].fillna(0.0), table["amount_b"].fillna(0.0)
        gap = (x - y).abs()
        missing = table["amount_a"].isna() | table["amount_b"].isna()
        small = (gap < 5000) & (gap * 100 < x.abs())
        names = ["missing", "match", "minor_diff"]
        table["s"] = np.select([missing, gap < 0.015, small], names, default="major_diff")
        table.assign(gap=gap)[table["s"] != "match"].nlargest(20, "gap")
        counts = table.groupby("s").agg(n=("s", "size"), a=("amount_a", "sum"), b=("amount_b", "sum"))["n"]
        return {"keys": len(table)} | {str(name): int(count) for name, count in counts.items()}

    assert pd
    return work


def datacompy(folder: Path, memory: str) -> Callable[[], Counts]:
    """Its comparison of two frames on unique keys; it knows matching and missing, not minor and major."""
    import datacompy as library

    compare = getattr(library, "PandasCompare", None) or library.Compare

    def work() -> Counts:
        a, b = _pandas_sides(folder)
        found = compare(a, b, join_columns=KEYS, abs_tol=0.015, rel_tol=0)
        both = found.intersect_rows
        missing = len(found.df1_unq_rows) + len(found.df2_unq_rows)
        gap = (both["amount_df1"] - both["amount_df2"]).abs()
        both.assign(gap=gap).nlargest(20, "gap")
        return {"keys": len(both) + missing, "match": int(both["amount_match"].sum()), "missing": missing}

    return work


def pointblank(folder: Path, memory: str) -> Callable[[], Counts]:
    """Its validation steps over the joined frame."""
    import pointblank as pb
    import polars as pl

    def work() -> Counts:
        sides = [
            pl.scan_parquet(folder / f"{side}.parquet")
            .with_columns(pl.col("amount").cast(pl.Float64))
            .group_by(KEYS)
            .agg(pl.col("amount").sum().alias(side))
            for side in "ab"
        ]
        gap = (pl.col("a").fill_null(0.0) - pl.col("b").fill_null(0.0)).abs().alias("gap")
        table = sides[0].join(sides[1], on=KEYS, how="full", coalesce=True).with_columns(gap).collect()
        checked = (
            pb.Validate(table)
            .col_vals_not_null(columns=["a", "b"])
            .col_vals_lt(columns="gap", value=0.015)
            .interrogate()
        )
        missing = sum(int(count) for step, count in checked.n_failed().items() if step < 3)
        off = int(checked.n_failed()[3])
        table.top_k(20, by="gap")
        return {"keys": table.height, "missing": missing, "match": table.height - off}

    return work


def _pandas_sides(folder: Path) -> list:
    import pandas as pd

    sides = []
    for side in "ab":
        frame = pd.read_parquet(folder / f"{side}.parquet")
        frame["amount"] = frame["amount"].astype("float64")
        sides.append(frame.groupby(KEYS, as_index=False, sort=False)["amount"].sum())
    return sides


CONTENDERS = {
    "raw": (raw, ["duckdb"]),
    "treadle": (treadle, ["duckdb", "sqlglot"]),
    "polars": (polars, ["polars"]),
    "pandas": (pandas, ["pandas", "pyarrow"]),
    "datacompy": (datacompy, ["datacompy", "pandas", "pyarrow"]),
    "pointblank": (pointblank, ["pointblank", "polars"]),
}
TEXTS = {
    "raw_csv": (partial(raw, kind="csv"), ["duckdb"]),
    "treadle_csv": (partial(treadle, kind="csv"), ["duckdb", "sqlglot"]),
    "treadle_formats": (partial(treadle, kind="csv", alpha=True), ["duckdb", "sqlglot"]),
    "raw_german": (partial(raw, kind="german.csv"), ["duckdb"]),
    "treadle_german": (partial(treadle, kind="csv", ending="german.csv"), ["duckdb", "sqlglot"]),
}
EXPORTS = {"treadle_export": (partial(treadle, exports=("out.parquet", "out.csv")), ["duckdb", "sqlglot"])}
KEYED = {
    "raw_keyed": (partial(raw, kind="duckdb"), ["duckdb"]),
    "join_keyed": (partial(raw, rows=JOINED, kind="duckdb"), ["duckdb"]),
    "treadle_keyed": (partial(treadle, kind="duckdb"), ["duckdb", "sqlglot"]),
}
ALL = CONTENDERS | TEXTS | EXPORTS | KEYED


def alone(name: str, folder: Path, memory: str) -> None:
    """One run, in this process; prints what it took and found as JSON."""
    work = ALL[name][0](folder, memory)
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "found": found}))


def measured(name: str, folder: Path, memory: str) -> dict | str:
    """One run in a fresh process, or why there is none."""
    missing = next((package for package in ALL[name][1] if find_spec(package) is None), None)
    if missing:
        return f"{missing} is not installed"
    command = [sys.executable, __file__, "--alone", name, "--folder", str(folder), "--memory", memory]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][:150]}"
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(names: list[str], folder: Path, options: argparse.Namespace) -> dict[str, list[dict] | str]:
    """The runs of each, all of them in turns, so that what else the machine does falls on all alike."""
    runs: dict[str, list[dict] | str] = {name: [] for name in names}
    for _ in range(options.repeat):
        for name in names:
            done = runs[name]
            if isinstance(done, str):
                continue
            run = measured(name, folder, options.memory)
            if isinstance(run, str):
                runs[name] = run
            else:
                done.append(run)
    return runs


def table(rows: int, groups: int, options: argparse.Namespace, names: list[str]) -> None:
    """Measures all for one size and prints a line each."""
    folder = options.folder / f"{rows}-{groups}"
    folder.mkdir(parents=True, exist_ok=True)
    make(folder, rows, groups)
    if set(names) & set(KEYED):
        make_keyed(folder)
    if set(names) & set(TEXTS):
        make_text(folder)
    print(f"\n{rows:,} rows a side into {groups:,} groups, engine limit {options.memory}")
    print(f"  {'':15} {'CPU s':>8} {'wall s':>8} {'peak MB':>8} {'CPU/raw':>8} {'median':>8} {'MB/raw':>8}")
    base: list[dict] = []
    for name, runs in in_turns(names, folder, options).items():
        if isinstance(runs, str):
            print(f"  {name:15} {runs}")
            continue
        base = base or runs
        print(line(name, runs, base), flush=True)


def line(name: str, runs: list[dict], base: list[dict]) -> str:
    """The run with the least CPU, as multiples of the first contender's, and the median of all turns' multiples."""
    best, least = (min(all_runs, key=lambda run: run["cpu"]) for all_runs in (runs, base))
    middle = statistics.median(run["cpu"] / other["cpu"] for run, other in zip(runs, base, strict=True))
    ratios = f"{best['cpu'] / least['cpu']:8.2f} {middle:8.2f} {best['peak'] / least['peak']:8.2f}"
    wrong = {key: value for key, value in best["found"].items() if least["found"].get(key, 0) != value}
    note = f"  found other counts: {wrong}" if wrong else ""
    return f"  {name:15} {best['cpu']:8.3f} {best['wall']:8.3f} {best['peak']:8.0f} {ratios}{note}"


def main() -> None:
    """Runs what the options name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows a side")
    parser.add_argument("--groups", type=int, action="append", help="keys; repeatable. Default: 2400 and 0.68 a row")
    parser.add_argument("--only", default=",".join(CONTENDERS), help="contenders, with commas between")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the least counts")
    parser.add_argument("--memory", default="2GB", help="memory limit of DuckDB, for raw and treadle")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "treadle-bench-compare")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        alone(options.alone, options.folder, options.memory)
        return
    names = [name.strip() for name in options.only.split(",")]
    if unknown := [name for name in names if name not in ALL]:
        parser.error(f"there is no contender {unknown[0]!r}; there are: {', '.join(ALL)}")
    for groups in options.groups or [2400, options.rows * 68 // 100]:
        table(options.rows, groups, options, names)


if __name__ == "__main__":
    main()
