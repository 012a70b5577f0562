"""The bounds that the watch for progress keeps on recorded runs with known outcomes."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT.parent / "shared" / "recordings"

pytestmark = pytest.mark.skipif(
    not (RECORDINGS / "runs.jsonl.gz").is_file(),
    reason=f"the recorded runs are kept outside the repository and are not at {RECORDINGS}",
)


@cache
def bench() -> ModuleType:
    spec = spec_from_file_location("bench_progress", ROOT / "bench" / "progress.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def runs():
    return bench().read_runs(RECORDINGS)


def test_few_false_alarms_in_every_corpus_and_many_calls_saved() -> None:
    found = [bench().first_found(run, bench().weighed(bench().DEFAULT_WEIGHTS)) for run in runs()]
    whole, corpora = bench().score(runs(), found), bench().by_corpus(runs(), found)
    assert whole.false_alarm_rate <= 0.003
    assert [name for name, score in corpora.items() if score.false_alarm_rate > 0.003] == []
    assert whole.saved_rate >= 0.18
    assert bench().means(corpora)[1] >= 0.12


def test_the_ladder_ends_few_successes_and_saves_calls() -> None:
    ended = [climbed.ended for climbed in bench().climbs(runs())]
    whole, corpora = bench().score(runs(), ended), bench().by_corpus(runs(), ended)
    assert whole.false_alarm_rate <= 0.001
    assert whole.saved_rate >= 0.17
    assert bench().means(corpora)[1] >= 0.10


def test_few_successes_are_told_that_they_get_nowhere() -> None:
    told = [climbed.told for climbed in bench().climbs(runs())]
    assert bench().score(runs(), told).false_alarm_rate <= 0.01
