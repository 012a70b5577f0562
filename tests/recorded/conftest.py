"""What the tests over recorded traffic share: the rows, kept outside the repository, and cuts of their streams."""

import gzip
import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from treadle.models.sse import EventParser

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
CUTS = 40


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], list[dict[str, Any]]]:
    """The rows of one file of recordings, by its name without `.jsonl.gz`."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are kept outside the repository and are not at {RECORDINGS}")

    def load(name: str) -> list[dict[str, Any]]:
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return load


@pytest.fixture(scope="session")
def read_stream() -> Callable[[str | list[Any], int | None], list[bytes]]:
    """The data of a stream's events, read whole (seed None) or cut at bytes that the seed chooses."""

    def read(stream: str | list[Any], seed: int | None = None) -> list[bytes]:
        text = stream if isinstance(stream, str) else "".join(f"data: {json.dumps(event)}\n\n" for event in stream)
        body, chance = text.encode(), random.Random(seed)
        cuts = sorted(chance.sample(range(len(body)), 0 if seed is None else min(CUTS, len(body))))
        parser = EventParser()
        events = [event for a, b in pairwise([0, *cuts, len(body)]) for event in parser.feed(body[a:b])]
        return [*events, *parser.close()]

    return read
