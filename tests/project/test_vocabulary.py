"""The vocabularies that estimates are held against: real ones, different ones, of any text."""

import pytest
from vocabulary import VOCABULARIES, count, counts, most


def test_each_vocabulary_is_the_one_that_it_is_named_after():
    assert counts("Hello world, this is a test") == {"cl100k": 7, "o200k": 7, "voyage3": 7}
    assert counts("1234567890") == {"cl100k": 4, "o200k": 4, "voyage3": 10}
    assert counts("日本語テキスト") == {"cl100k": 7, "o200k": 5, "voyage3": 5}
    assert most("550e8400-e29b-41d4-a716-446655440000") == 34


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_any_text_is_counted(vocabulary):
    assert count("", vocabulary) == 0
    assert count("<|endoftext|>", vocabulary) == 7
    assert count("half of a pair: \ud83d", vocabulary) > 0
    assert count("x" * 5_000_000, vocabulary) == 625_000
