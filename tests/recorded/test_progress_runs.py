"""The bounds that the watch for progress keeps on recorded runs with known outcomes."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from treadle.judging.progress import ObservedCall, detect_stuck

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "runs.jsonl.gz"

pytestmark = pytest.mark.skipif(
    not RECORDED.is_file(),
    reason=f"the recorded runs are kept outside the repository and are not at {RECORDED}",
)


def judged() -> Iterator[tuple[str, bool, int, int | None]]:
    """Of each run: corpus, whether it succeeded, how many calls, and after how many it was first found stuck."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            calls = [
                ObservedCall(c["name"], c["arguments"], f"{c['result']}\n[{c['result_sha1']}]") for c in row["calls"]
            ]
            found = next((n for n in range(1, len(calls) + 1) if detect_stuck(calls[:n])), None)
            yield row["corpus"], row["success"], len(calls), found


def test_few_false_alarms_and_many_calls_saved() -> None:
    alarms: dict[str, list[bool]] = {}
    saved: dict[str, list[tuple[int, int]]] = {}
    for corpus, success, length, found in judged():
        if success:
            alarms.setdefault(corpus, []).append(found is not None and found < length)
        else:
            saved.setdefault(corpus, []).append((length - found if found is not None else 0, length))

    every_alarm = [alarm for part in alarms.values() for alarm in part]
    every_saved = [pair for part in saved.values() for pair in part]
    assert mean(every_alarm) <= 0.003
    assert mean(mean(part) for part in alarms.values()) <= 0.003
    assert sum(s for s, _ in every_saved) / sum(n for _, n in every_saved) >= 0.20
    assert mean(sum(s for s, _ in part) / sum(n for _, n in part) for part in saved.values()) >= 0.12
