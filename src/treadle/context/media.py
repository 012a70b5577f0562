"""Media: how many tokens images and files take, reckoned on the high side from their bytes. Pure.

Providers read a file's text, and of a PDF also each page as an image. How much that is shows only when they have read
it; so a page counts as much as a dense one.
"""

import re
import zlib
from functools import lru_cache

from treadle.context.texts import estimate_text
from treadle.kernel.messages import File, Image

IMAGE_TOKENS = 1600
"""A small image, at the least: some providers charge as much for any."""

PIXELS_PER_TOKEN = 416
"""Pixels of an image in a token: 1,024 times the dearest factor of OpenAI's, 2.46; Claude has 750.

Source: https://platform.openai.com/docs/guides/images-vision
"""

LARGEST_IMAGE = 5000
"""The largest image that is not scaled down, 3.75 million pixels at Claude, and one whose size nobody has seen."""

PAGE_TOKENS = 4600
"""A page of a PDF: an image of it, and 3,000 tokens of text.

Source: https://docs.claude.com/en/docs/build-with-claude/pdf-support
"""

BYTES_PER_TOKEN = 2
"""Bytes in a token of a file that is neither text nor a PDF, such as a packed document."""

UNSEEN_PAGES = 10
"""Pages of a file that is given by its address, or whose pages cannot be counted from what it shows."""

MOST_UNPACKED = 1 << 24
"""Bytes of a PDF's packed parts that are looked at for pages; a small file may hold a huge one."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The parts of a JPEG that say how large it is."""
_STREAM = re.compile(rb"stream\r?\n")


def media_tokens(part: Image | File) -> int:
    """Tokens of an image or a file in a request."""
    if isinstance(part, Image):
        return _image(part.data)
    if part.data is None:
        return UNSEEN_PAGES * PAGE_TOKENS
    if part.media_type == "application/pdf" or part.data[:5] == b"%PDF-":
        return _pages(part.data) * PAGE_TOKENS
    if part.media_type.startswith("image/"):
        return _image(part.data)
    return max(IMAGE_TOKENS, _text(part.data))


def _image(data: bytes | None) -> int:
    """The tokens of an image by its size."""
    pixels = None if data is None else _pixels(data)
    return LARGEST_IMAGE if pixels is None else min(max(IMAGE_TOKENS, pixels // PIXELS_PER_TOKEN), LARGEST_IMAGE)


def _pixels(data: bytes) -> int | None:
    """How many pixels an image has, by its first bytes; None if they do not say."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return int.from_bytes(data[16:20], "big") * int.from_bytes(data[20:24], "big")
    if data[:4] == b"GIF8" and len(data) >= 10:
        return int.from_bytes(data[6:8], "little") * int.from_bytes(data[8:10], "little")
    at = 2 if data[:3] == b"\xff\xd8\xff" else len(data)
    while at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in _FRAMES:
            return int.from_bytes(data[at + 5 : at + 7], "big") * int.from_bytes(data[at + 7 : at + 9], "big")
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


@lru_cache(maxsize=16)
def _text(data: bytes) -> int:
    """The tokens of a file of text, however it is encoded, or of another kind, out of which a provider takes one."""
    if b"\0" in data:
        return len(data) // BYTES_PER_TOKEN + 1
    try:
        return estimate_text(data.decode())
    except UnicodeDecodeError:
        return estimate_text(data.decode("latin-1"))


@lru_cache(maxsize=16)
def _pages(data: bytes) -> int:
    """The pages of a PDF: as many as it shows or says that it has, packed parts included."""
    pages, said = _seen(data)
    left = MOST_UNPACKED
    for found in _STREAM.finditer(data):
        end = data.find(b"endstream", found.end())
        try:
            part = zlib.decompressobj().decompress(data[found.end() : end if end > 0 else len(data)], left)
        except zlib.error:
            continue
        more, told = _seen(part)
        pages, said, left = pages + more, max(said, told), left - len(part)
        if left <= 0:
            break
    return max(pages, said) or UNSEEN_PAGES


def _seen(data: bytes) -> tuple[int, int]:
    """The pages in `data`, and the most that it says there are."""
    return len(_PAGE.findall(data)), max((int(count) for count in _COUNT.findall(data)), default=0)
