"""Escaped call ids: no id that a model makes up can be taken for a part of another name."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.names import escaped


@pytest.mark.parametrize("plain", ["call_0_0", "toolu_01Ab-9", "call:1", "", "a" * 500])
def test_an_ordinary_id_stays_as_it_is(plain):
    assert escaped(plain) == plain


@pytest.mark.parametrize(
    ("call_id", "name"),
    [
        ("a/b", "a%2Fb"),
        ("a#b", "a%23b"),
        ("a+b", "a%2Bb"),
        ("a.b", "a%2Eb"),
        ("a~b", "a%7Eb"),
        ("a%2Fb", "a%252Fb"),
        ("a b\n", "a%20b%0A"),
        ("é", "%C3%A9"),
        ("\x7f\x9f", "%7F%C2%9F"),
        ("\ud800", "%3F"),
        ("--quiet", "%2D-quiet"),
        ("-", "%2D"),
    ],
)
def test_what_separates_or_cannot_be_seen_is_escaped(call_id, name):
    assert escaped(call_id) == name


@given(st.text(max_size=20), st.text(max_size=20))
def test_names_differ_where_ids_do(one, other):
    assert unquote(escaped(one)) == one
    assert (escaped(one) == escaped(other)) == (one == other)


@given(st.text(st.characters(), max_size=20))
def test_whatever_an_id_holds_its_name_has_no_separator_and_is_printable_ascii(call_id):
    name = escaped(call_id)
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & set("/#+.~ ")
    assert not name.startswith("-")
