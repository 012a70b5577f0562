"""Names and ids in a history that any provider accepts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.models.identifiers import identifier

VALID = st.text("abcXYZ019_-", min_size=1, max_size=64)


@given(VALID)
def test_what_is_valid_stays_as_it_is(text):
    assert identifier(text, 64) == text


@given(st.text(max_size=200), st.sampled_from([40, 64, 128]))
def test_whatever_a_model_wrote_becomes_valid(text, longest):
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", identifier(text, longest))
    assert len(identifier(text, longest)) <= longest


@pytest.mark.parametrize(
    ("one", "other"), [("a.b", "a:b"), ("a.b", "a_b"), ("", " "), ("x" * 65, "x" * 66), ("\ud800", "\ud801")]
)
def test_different_ones_stay_different(one, other):
    assert identifier(one, 64) != identifier(other, 64)
