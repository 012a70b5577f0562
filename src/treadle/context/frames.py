"""Frames: what stands before the instructions of a skill in a folder, and says which it is and what it allows. Pure.

What a run may be offered follows from that, also where a journal redacts what stands around it: as names of tools and
skills are kept as they are, so is a frame. Neighbours: `treadle.tools.agent_skills`, which writes and reads them.
"""

import re
from typing import Final

ACTIVATE: Final = "activate_skill"
"""The tool whose result has one."""

_FRAME: Final = re.compile(r'<skill_content name="([^"]*)"(?: allowed-tools="([^"]*)")?>')

_WRITTEN: Final = re.compile(r'<skill_content name="[\w-]{1,64}"(?: allowed-tools="[\w -]*")?>')
"""One with nothing in it but names."""


def frame_in(text: str) -> "re.Match[str] | None":
    """The frame in a text, which is the last: a hook may have put words before the instructions, in which is none."""
    found = [*_FRAME.finditer(text)]
    return found[-1] if found else None


def with_frame(kept: str, before: str) -> str:
    """`kept`, what a journal keeps of the text `before`, with the frame that was in that."""
    said, found = frame_in(before), frame_in(kept)
    if said is None or not _WRITTEN.fullmatch(said[0]) or (found is not None and found[0] == said[0]):
        return kept
    return f"{said[0]}\n{kept}" if found is None else f"{kept[: found.start()]}{said[0]}{kept[found.end() :]}"
