"""Identifiers: names of tools and ids of calls as every provider accepts them.

A history may hold what another provider, or a model that invented a tool, wrote; a provider that refuses one such name
refuses the whole history, and the run could never go on. Pure. Neighbours: the dialects, `treadle.models.codec`.
"""

import re
from functools import lru_cache
from typing import Final
from zlib import crc32

INVALID: Final = re.compile(r"[^a-zA-Z0-9_-]")


# Tools are few, and a call's id comes again with its result.
@lru_cache(maxsize=1024)
def identifier(text: str, longest: int = 128) -> str:
    """`text` if it is a valid identifier (letters, digits, "_" and "-"), else a valid one in its place.

    The same text always gives the same identifier, different texts give different ones (up to a 32-bit checksum).

    Args:
        text: a tool's name or a call's id.
        longest: the most characters that the provider takes.
    """
    if len(text) <= longest and ((text.isascii() and text.isidentifier()) or (text and not INVALID.search(text))):
        return text
    return f"{INVALID.sub('_', text)[: longest - 9]}_{crc32(text.encode('utf-8', 'surrogatepass')):08x}"
