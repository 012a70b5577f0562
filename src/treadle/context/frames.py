"""Frames: what stands before the instructions of a skill in a folder, and says which it is and what it allows. Pure.

What a run may be offered follows from that, also where a journal redacts what stands around it: as names of tools and
skills are kept as they are, so is a frame. Neighbours: `treadle.tools.agent_skills`, which writes and reads them.
"""

import re
from typing import Final

from treadle.context.redacting import Redact, kept_text

ACTIVATE: Final = "activate_skill"
"""The tool whose result has one."""

_FRAME: Final = re.compile(r'<skill_content name="([^"]*)"(?: allowed-tools="([^"]*)")?>')

_WRITTEN: Final = re.compile(r'<skill_content name="[\w-]{1,64}"(?: allowed-tools="[\w -]*")?>')
"""One with nothing in it but names."""


def frame_in(text: str) -> "re.Match[str] | None":
    """The frame in a text, which is the last: a hook may have put words before the instructions, in which is none."""
    found = [*_FRAME.finditer(text)]
    return found[-1] if found else None


def beside_frame(redact: Redact) -> Redact:
    """What passes a text through `redact`, but for the frame in it."""

    def kept(text: str) -> str:
        found = frame_in(text)
        if found is None or not _WRITTEN.fullmatch(found[0]):
            return kept_text(text, redact)
        return kept_text(text[: found.start()], redact) + found[0] + kept_text(text[found.end() :], redact)

    return kept
