"""Arithmetic in words: what is written down for a calculator."""

import pytest

from treadle import Agent, RunResult
from treadle.tools.builtin import calculator


def asked(question: str) -> RunResult:
    return Agent("offline", tools=[calculator]).run_sync(question)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the sum of 4, 5 and 6?", "4 + 5 + 6 = 15"),
        ("What is the average of 3, 4 and 5?", "(3 + 4 + 5) / 3 = 4"),
        ("What is 20% more than 50?", "50 * (1 + 20 / 100) = 60"),
        ("What is 20 percent off 50?", "50 * (1 - 20 / 100) = 40"),
        ("What is twice 21?", "2 * 21 = 42"),
        ("What is a third of 90?", "90 / 3 = 30"),
        ("Is 3 times 4 less than 10?", "No. 3 * 4 = 12"),
    ],
)
def test_sums_in_words(question: str, said: str) -> None:
    assert asked(question).text.startswith(said)
