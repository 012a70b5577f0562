"""What the watch for progress finds in recorded agent runs.

    python bench/progress.py [--recordings ../shared/recordings] [--write]

Reads `runs.jsonl.gz` (runs of several corpora, each with its outcome), asks `detect_stuck` after every call, and prints
a table per corpus: false alarms (successful runs found stuck before their last call) and the share of the failed runs'
calls that come after the point where the run is first found stuck (saved, if it were halted there). Then simpler rules
to compare with, and how the figures hold on runs that the weights were not chosen on. `--write` puts the tables into
`bench/progress.md`. Text in the recordings is cut at 600 characters; the digest of the whole result is put after it.
"""

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from treadle.judging.progress import DEFAULT_WEIGHTS, ObservedCall, Weights, detect_stuck

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT.parent / "shared" / "recordings"
REPORT = Path(__file__).with_suffix(".md")
FALSE_ALARMS_AT_MOST = 0.003
SAVED_AT_LEAST = 0.12
SPLITS = 50

Detector = Callable[[Sequence[ObservedCall]], bool]


@dataclass(frozen=True)
class Run:
    corpus: str
    success: bool
    calls: tuple[ObservedCall, ...]


@dataclass(frozen=True)
class Score:
    successes: int
    false_alarms: int
    failed_calls: int
    saved_calls: int

    @property
    def false_alarm_rate(self) -> float:
        return self.false_alarms / self.successes if self.successes else 0.0

    @property
    def saved_rate(self) -> float:
        return self.saved_calls / self.failed_calls if self.failed_calls else 0.0


def read_runs(recordings: Path) -> list[Run]:
    """The recorded runs in the order of the file."""
    with gzip.open(recordings / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [_run(json.loads(line)) for line in lines]


def _run(row: dict[str, Any]) -> Run:
    calls = tuple(
        ObservedCall(call["name"], call["arguments"], f"{call['result']}\n[{call['result_sha1']}]")
        for call in row["calls"]
    )
    return Run(row["corpus"], row["success"], calls)


def first_found(run: Run, stuck: Detector) -> int | None:
    """After how many calls the run is first found stuck, or None."""
    return next((n for n in range(1, len(run.calls) + 1) if stuck(run.calls[:n])), None)


def score(runs: Sequence[Run], found: Sequence[int | None]) -> Score:
    pairs = list(zip(runs, found, strict=True))
    succeeded = [(run, n) for run, n in pairs if run.success]
    failed = [(run, n) for run, n in pairs if not run.success]
    return Score(
        successes=len(succeeded),
        false_alarms=sum(n is not None and n < len(run.calls) for run, n in succeeded),
        failed_calls=sum(len(run.calls) for run, _ in failed),
        saved_calls=sum(len(run.calls) - n for run, n in failed if n is not None),
    )


def by_corpus(runs: Sequence[Run], found: Sequence[int | None]) -> dict[str, Score]:
    scores = {}
    for corpus in dict.fromkeys(run.corpus for run in runs):
        chosen = [i for i, run in enumerate(runs) if run.corpus == corpus]
        scores[corpus] = score([runs[i] for i in chosen], [found[i] for i in chosen])
    return scores


def alike_in_a_row(times: int) -> Detector:
    def stuck(calls: Sequence[ObservedCall]) -> bool:
        last = calls[-times:]
        return len(last) == times and len({(c.name, c.arguments, c.result) for c in last}) == 1

    return stuck


def seen_lately(within: int) -> Detector:
    def stuck(calls: Sequence[ObservedCall]) -> bool:
        *earlier, last = calls[-within - 1 :]
        return any((c.name, c.arguments, c.result) == (last.name, last.arguments, last.result) for c in earlier)

    return stuck


def weighed(weights: Weights) -> Detector:
    return lambda calls: detect_stuck(calls, weights) is not None


def candidates() -> list[Weights]:
    """The weights among which a choice is made when the choosing itself is tested."""
    grid = product((5, 6, 7, 8, 9, 10), (0, 1), (1, 2), (2, 4))
    return [Weights(enough=e, fresh_error=f, known_error=k, again=a) for e, f, k, a in grid]


def choose(runs: Sequence[Run], found: dict[Weights, list[int | None]], seen: Iterable[int], bound: float) -> Weights:
    """The weights that save most on the runs `seen` among those whose false alarms there stay within `bound`."""
    indexes = list(seen)
    part = [runs[i] for i in indexes]
    scores = {w: score(part, [f[i] for i in indexes]) for w, f in found.items()}
    within = [w for w, s in scores.items() if s.false_alarm_rate <= bound]
    quietest = min(scores, key=lambda w: scores[w].false_alarm_rate)
    return max(within, key=lambda w: scores[w].saved_rate, default=quietest)


def table(runs: Sequence[Run], found: Sequence[int | None]) -> list[str]:
    scores = by_corpus(runs, found)
    rows = [
        "| corpus | successful runs | false alarms | share | failed runs' calls | saved | share |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, s in [*scores.items(), ("**all runs**", score(runs, found))]:
        rows.append(
            f"| {name} | {s.successes} | {s.false_alarms} | {s.false_alarm_rate:.2%} "
            f"| {s.failed_calls} | {s.saved_calls} | {s.saved_rate:.1%} |"
        )
    alarms, saved = means(scores)
    return [*rows, f"| **mean over corpora** | | | {alarms:.2%} | | | {saved:.1%} |"]


def means(scores: dict[str, Score]) -> tuple[float, float]:
    """False alarms and calls saved, each as the mean over corpora."""
    return mean(s.false_alarm_rate for s in scores.values()), mean(s.saved_rate for s in scores.values())


def comparison(runs: Sequence[Run], ours: Sequence[int | None]) -> list[str]:
    rules: list[tuple[str, Sequence[int | None]]] = [
        ("`detect_stuck`", ours),
        ("same call, same result, 3 in a row", [first_found(r, alike_in_a_row(3)) for r in runs]),
        ("same call, same result, 4 in a row", [first_found(r, alike_in_a_row(4)) for r in runs]),
        ("same call and result among the 3 calls before", [first_found(r, seen_lately(3)) for r in runs]),
    ]
    for changes in ({"enough": 6}, {"enough": 8}, {"fresh_error": 0}, {"again": 2}, {"window": 8}, {"window": 24}):
        name = ", ".join(f"{key}={value}" for key, value in changes.items())
        rules.append((f"`detect_stuck` with {name}", [first_found(r, weighed(Weights(**changes))) for r in runs]))
    rows = ["| rule | false alarms | mean over corpora | saved | mean over corpora |", "|---|--:|--:|--:|--:|"]
    for name, found in rules:
        whole, (alarms, saved) = score(runs, found), means(by_corpus(runs, found))
        rows.append(f"| {name} | {whole.false_alarm_rate:.2%} | {alarms:.2%} | {whole.saved_rate:.1%} | {saved:.1%} |")
    return rows


def halves(runs: Sequence[Run], found: dict[Weights, list[int | None]]) -> list[str]:
    """Choose on a random half, measure on the other; and the default weights on the same other halves."""
    bounds = (FALSE_ALARMS_AT_MOST, FALSE_ALARMS_AT_MOST / 2)
    scores: dict[str, list[Score]] = {}
    for seed in range(SPLITS):
        order = list(range(len(runs)))
        random.Random(seed).shuffle(order)
        seen, unseen = order[: len(order) // 2], order[len(order) // 2 :]
        choices = {f"chosen on the first half at most {b:.2%} there": choose(runs, found, seen, b) for b in bounds}
        for name, weights in {**choices, "the default weights": DEFAULT_WEIGHTS}.items():
            part = score([runs[i] for i in unseen], [found[weights][i] for i in unseen])
            scores.setdefault(name, []).append(part)
    rows = [
        f"| {SPLITS} splits: weights | false alarms on the other half | worst | within 0.3 % | saved there | worst |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, parts in scores.items():
        alarms, saved = [s.false_alarm_rate for s in parts], [s.saved_rate for s in parts]
        within = f"{sum(a <= FALSE_ALARMS_AT_MOST for a in alarms)} of {SPLITS}"
        rows.append(
            f"| {name} | {mean(alarms):.2%} | {max(alarms):.2%} | {within} | {mean(saved):.1%} | {min(saved):.1%} |"
        )
    return rows


def left_out(runs: Sequence[Run], found: dict[Weights, list[int | None]]) -> list[str]:
    """Choose on all corpora but one, measure on that one."""
    rows = [
        "| corpus left out | chosen on the others: enough, fresh, known, again | false alarms | saved "
        "| default: false alarms | saved |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for corpus in dict.fromkeys(run.corpus for run in runs):
        others = [i for i, run in enumerate(runs) if run.corpus != corpus]
        best = choose(runs, found, others, FALSE_ALARMS_AT_MOST / 2)
        there, default = by_corpus(runs, found[best])[corpus], by_corpus(runs, found[DEFAULT_WEIGHTS])[corpus]
        rows.append(
            f"| {corpus} | {best.enough}, {best.fresh_error}, {best.known_error}, {best.again} "
            f"| {there.false_alarm_rate:.2%} | {there.saved_rate:.1%} "
            f"| {default.false_alarm_rate:.2%} | {default.saved_rate:.1%} |"
        )
    return rows


def report(recordings: Path) -> str:
    runs = read_runs(recordings)
    found = {w: [first_found(r, weighed(w)) for r in runs] for w in candidates()}
    ours = found[DEFAULT_WEIGHTS]
    sections = [
        ("Per corpus", table(runs, ours)),
        ("Beside simpler rules and other weights", comparison(runs, ours)),
        ("On runs that the weights were not chosen on", [*halves(runs, found), "", *left_out(runs, found)]),
    ]
    return "\n\n".join(f"## {title}\n\n" + "\n".join(rows) for title, rows in sections) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the watch for progress finds in recorded agent runs.")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="folder that holds runs.jsonl.gz")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {REPORT.name}, below its text")
    options = parser.parse_args()
    if not (options.recordings / "runs.jsonl.gz").is_file():
        parser.error(f"there is no runs.jsonl.gz in {options.recordings}; say where it is with --recordings")
    tables = report(options.recordings)
    print(tables)
    if options.write:
        text = REPORT.read_text(encoding="utf-8") if REPORT.exists() else "# Progress\n\n"
        kept = text.partition("## Per corpus")[0]
        REPORT.write_text(kept + tables, encoding="utf-8")


if __name__ == "__main__":
    main()
