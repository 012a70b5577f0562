"""Images are reckoned by their size, where their first bytes say it."""

import struct

import pytest

from treadle.context.media import IMAGE_TOKENS, LARGEST_IMAGE, media_tokens
from treadle.kernel.messages import File, Image


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02"


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00"


def jpeg(width, height):
    about = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + bytes(10)
    return b"\xff\xd8" + about + b"\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + bytes(6)


@pytest.mark.parametrize("made", [png, gif, jpeg])
def test_an_image_is_reckoned_by_its_size(made):
    assert media_tokens(Image(made(100, 100))) == IMAGE_TOKENS
    assert IMAGE_TOKENS < media_tokens(Image(made(1200, 1000))) < LARGEST_IMAGE
    assert media_tokens(Image(made(4000, 3000))) == LARGEST_IMAGE
    assert media_tokens(File(made(1200, 1000), media_type="image/png")) == media_tokens(Image(made(1200, 1000)))


@pytest.mark.parametrize(
    "data", [None, b"", b"png", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0\x00\x00" + bytes(40), png(1, 1)[:20]]
)
def test_an_image_whose_size_nobody_has_seen_is_a_large_one(data):
    assert media_tokens(Image(data, url=None if data is not None else "https://a.io/b.png")) == LARGEST_IMAGE
