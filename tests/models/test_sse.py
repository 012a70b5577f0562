"""The parser of event streams: the same events however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.models.errors import ProtocolError
from treadle.models.sse import EventParser


def parsed(*chunks: bytes) -> list[bytes]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\n\r\ndata:  b\r\n\r\n", [b"a", b" b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": keep-alive\n\n:\n\ndata: a\n\n: done\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"event: ping\n\n", []),
        (b"data: a\n\ndata: b", [b"a", b"b"]),
        (b"data: a\n\ndata: b\n", [b"a", b"b"]),
        (b"data\n\n", [b""]),
        (b"database: 1\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        ("data: é☃😀\n\n".encode(), ["é☃😀".encode()]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b"", []),
    ],
)
def test_every_form_of_a_stream_gives_its_data_whole_and_byte_by_byte(stream: bytes, events: list[bytes]) -> None:
    assert parsed(stream) == events
    assert parsed(*[stream[i : i + 1] for i in range(len(stream))]) == events


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_a_stream_cut_anywhere_gives_what_was_sent(texts: list[str], end: str, cuts: list[int]) -> None:
    stream = "".join(f": still here{end}data: {text}{end}{end}" for text in texts).encode()
    places = sorted({0, len(stream), *[cut for cut in cuts if cut < len(stream)]})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert parsed(*chunks) == [text.encode() for text in texts]


def parsed_slowly(parser: EventParser) -> None:
    for _ in range(20):
        parser.feed(b"x" * 100)


def test_an_endless_event_is_refused_before_it_fills_the_memory() -> None:
    parser = EventParser(limit=1000)
    with pytest.raises(ProtocolError, match="more than 1,000 bytes"):
        parsed_slowly(parser)
