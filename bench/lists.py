"""What a list of runs costs in a journal of 100,000: the first page, narrowed, and searched.

`python bench/lists.py [runs] [folder]`. The journal is made first, which takes some 20 s, and removed at the end.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from treadle.journal import SqliteJournal, Wanted
from treadle.kernel.events import FORMAT, Event, ModelReplied, RunFinished, RunPaused, RunStarted
from treadle.kernel.messages import AssistantMessage, Text, Usage, UserMessage
from treadle.kernel.stop import stopped

TOPICS = "invoice customer gadget total value region sales margin quarter stock price order refund shipping"
WORDS = TOPICS.split()
TOGETHER = 2000
LISTS = {
    "first page": Wanted(),
    "of an agent": Wanted(agent="agent-3"),
    "of an agent that has few, finished": Wanted(agent="rare", status="finished"),
    "of a model": Wanted(model="model-2"),
    "waiting": Wanted(status="waiting"),
    "since a day": Wanted(since=0.9),
    "with a text that many have": Wanted(text="Gadget"),
    "with a text that none has": Wanted(text="zebra"),
    "with a text that none has, of an agent": Wanted(text="zebra", agent="agent-3"),
    "damaged": Wanted(status="damaged"),
}


def run(number: int, runs: int, rng: random.Random) -> tuple[str, list[Event]]:
    at, run_id = number / runs, f"20261122-{number:06}-{rng.getrandbits(40):010x}"
    question = UserMessage(f"{' '.join(rng.choices(WORDS, k=12))} number {number}")
    agent = "rare" if number % 1000 == 0 else f"agent-{number % 7}"
    model = f"model-{number % 5}"
    end = RunPaused(at=at, stop=stopped("waiting", "x")) if number % 50 == 0 else None
    return run_id, [
        RunStarted(at=at, run_id=run_id, messages=(question,), format=FORMAT, agent=agent, model=model),
        ModelReplied(at=at, step=0, message=AssistantMessage((Text("It is 5."),)), usage=Usage(10, 5)),
        end or RunFinished(at=at, stop=stopped("answered")),
    ]


async def main(runs: int, path: Path) -> None:
    rng = random.Random(1)
    async with SqliteJournal(path) as journal:
        for start in range(0, runs, TOGETHER):
            made = [run(number, runs, rng) for number in range(start, min(start + TOGETHER, runs))]
            await asyncio.gather(*[journal.append(run_id, 0, events) for run_id, events in made])
        print(f"{runs:,} runs; pages of 50, the best of 5: on the clock, and processor time")
        for name, wanted in LISTS.items():
            took, worked = [], []
            for _ in range(5):
                before, work = time.perf_counter(), time.process_time()
                found = await journal.list(50, None, wanted)
                took.append((time.perf_counter() - before) * 1e3)
                worked.append((time.process_time() - work) * 1e3)
            print(f"  {name:40} {len(found):3} runs {min(took):10.1f} ms {min(worked):10.1f} ms")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        asyncio.run(main(count, Path(folder) / "journal.db"))
