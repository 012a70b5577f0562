"""What the watch for progress finds in recorded agent runs.

    python bench/progress.py [--recordings ../shared/recordings] [--write]

Reads `runs.jsonl.gz` (runs of several corpora, each with its outcome), asks `detect_stuck` after every step, and prints
a table per corpus: false alarms (successful runs found stuck before their last call) and the share of the failed runs'
calls that come after the point where the run is first found stuck (saved, if it were halted there). The same for the
ladder of a live run, which ends a run only when it goes on after it was told so and had its tools withheld: each run is
folded from events, `judge` is asked after every step, and what it says is carried out but for the effect on the model.
Then simpler rules to compare with, and how the figures hold on runs that the weights were not chosen on. `--write` puts
the tables into `bench/progress.md`. Text in the recordings is cut at 600 characters; the digest of the whole result is
put after it.
"""

import argparse
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from treadle import Decision
from treadle.judging.judge import judge
from treadle.judging.progress import DEFAULT_WEIGHTS, ObservedCall, Weights, detect_stuck
from treadle.kernel.events import ModelReplied, NudgeGiven, RunStarted, StepPrepared, ToolFinished, ToolStarted
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.stop import Judgement, Stuck

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
    number: int
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
        ObservedCall(
            call["name"], call["arguments"], f"{call['result']}\n[{call['result_sha1']}]", step=call["message"]
        )
        for call in row["calls"]
    )
    return Run(row["corpus"], row["run"], row["success"], calls)


def first_found(run: Run, stuck: Detector) -> int | None:
    """After how many calls the run is first found stuck, or None."""
    return next((n for n in range(1, len(run.calls) + 1) if stuck(run.calls[:n])), None)


@dataclass(frozen=True)
class Climb:
    """How far a run gets up the ladder: after how many calls it is first told so, and after how many it is ended."""

    told: int | None
    ended: int | None


def climb(run: Run, tools: tuple[str, ...]) -> Climb:
    """Carry a recorded run through the ladder of a live one that has `tools`."""
    state = fold_all([RunStarted("r", (UserMessage("go"),), 1, tools=tools)])
    told: int | None = None
    for number, call in enumerate(run.calls):
        stuck = asked(state)
        if stuck is not None and stuck.act == "nudge":
            told = number if told is None else told
            state = fold(state, NudgeGiven(stuck.message, stuck=True))
            stuck = asked(state)
        if stuck is not None and stuck.act == "stop":
            return Climb(told, number)
        withheld = () if stuck is None else stuck.tools
        rung = 2 if withheld else state.progress.stuck
        state = stepped(fold(state, StepPrepared(number, Decision("go"), stuck=rung, withheld=withheld)), number, call)
    return Climb(told, None)


def asked(state: RunState) -> Stuck | None:
    judgement = judge(state)
    return judgement.stuck if isinstance(judgement, Judgement) else None


def stepped(state: RunState, number: int, call: ObservedCall) -> RunState:
    """The state after a step that made one recorded call."""
    message = AssistantMessage((ToolCall("c", call.name, call.arguments),))
    finished = ToolFinished(number, "c", call.result, is_error=call.is_error)
    return fold_all([ModelReplied(number, message), ToolStarted(number, "c"), finished], state)


def climbs(runs: Sequence[Run], spare: tuple[str, ...] = ()) -> list[Climb]:
    """Every run through the ladder, with the tools of its corpus and, if they are more than one, `spare` ones."""
    tools: dict[str, dict[str, None]] = {}
    for run in runs:
        tools.setdefault(run.corpus, {}).update((call.name, None) for call in run.calls)
    return [climb(run, (*tools[run.corpus], *spare)) for run in runs]


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
    grid = product((7, 8, 9, 10, 11), (2, 3, 4), (4, 5, 6), (0, 1, 2))
    return [Weights(enough=e, rechecked=r, repeated=r, again=a, error=f) for e, r, a, f in grid]


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
    for changes in (
        {"enough": 8},
        {"enough": 10},
        {"error": 0},
        {"error": 2},
        {"rechecked": 0},
        {"again": 3},
        {"window": 8},
        {"window": 24},
    ):
        name = ", ".join(f"{key}={value}" for key, value in changes.items())
        rules.append((f"`detect_stuck` with {name}", [first_found(r, weighed(Weights(**changes))) for r in runs]))
    rows = ["| rule | false alarms | mean over corpora | saved | mean over corpora |", "|---|--:|--:|--:|--:|"]
    for name, found in rules:
        whole, (alarms, saved) = score(runs, found), means(by_corpus(runs, found))
        rows.append(f"| {name} | {whole.false_alarm_rate:.2%} | {alarms:.2%} | {whole.saved_rate:.1%} | {saved:.1%} |")
    return rows


def halves(runs: Sequence[Run], found: dict[Weights, list[int | None]]) -> list[str]:
    """Choose on one half, drawn by a digest of the run, measure on the other; and the default weights there."""
    bounds = (FALSE_ALARMS_AT_MOST, FALSE_ALARMS_AT_MOST / 2)
    scores: dict[str, list[Score]] = {}
    for seed in range(SPLITS):
        order = range(len(runs))
        seen, unseen = [i for i in order if drawn(runs[i], seed)], [i for i in order if not drawn(runs[i], seed)]
        choices = {f"chosen on the one half at most {b:.2%} there": choose(runs, found, seen, b) for b in bounds}
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


def drawn(run: Run, seed: int) -> bool:
    """Whether a run belongs to the one half of a split."""
    return hashlib.sha256(f"{seed} {run.corpus} {run.number}".encode()).digest()[0] % 2 == 0


def left_out(runs: Sequence[Run], found: dict[Weights, list[int | None]]) -> list[str]:
    """Choose on all corpora but one, measure on that one."""
    rows = [
        "| corpus left out | chosen on the others: enough, repeated, again, error | false alarms | saved "
        "| default: false alarms | saved |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for corpus in dict.fromkeys(run.corpus for run in runs):
        others = [i for i, run in enumerate(runs) if run.corpus != corpus]
        best = choose(runs, found, others, FALSE_ALARMS_AT_MOST / 2)
        there, default = by_corpus(runs, found[best])[corpus], by_corpus(runs, found[DEFAULT_WEIGHTS])[corpus]
        rows.append(
            f"| {corpus} | {best.enough}, {best.repeated}, {best.again}, {best.error} "
            f"| {there.false_alarm_rate:.2%} | {there.saved_rate:.1%} "
            f"| {default.false_alarm_rate:.2%} | {default.saved_rate:.1%} |"
        )
    return rows


def through_the_ladder(runs: Sequence[Run]) -> list[str]:
    rows = [
        "| a run has | successes ended | told | saved | mean over corpora |",
        "|---|--:|--:|--:|--:|",
    ]
    tables = []
    for name, spare in (("the tools seen in its corpus", ()), ("one tool more", ("another",))):
        climbed = climbs(runs, spare)
        ended, told = [c.ended for c in climbed], [c.told for c in climbed]
        whole, (_, saved) = score(runs, ended), means(by_corpus(runs, ended))
        rows.append(
            f"| {name} | {whole.false_alarms} ({whole.false_alarm_rate:.2%}) | {score(runs, told).false_alarms} "
            f"| {whole.saved_rate:.1%} | {saved:.1%} |"
        )
        tables.append(ended)
    return [*rows, "", *table(runs, tables[0])]


def report(recordings: Path) -> str:
    runs = read_runs(recordings)
    found = {w: [first_found(r, weighed(w)) for r in runs] for w in candidates()}
    ours = found[DEFAULT_WEIGHTS]
    sections = [
        ("Per corpus", table(runs, ours)),
        ("Through the ladder of a live run", through_the_ladder(runs)),
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
