"""Status: how a run stands where it was looked at whether somebody drives it. Pure."""

from typing import Literal

from treadle.journal.info import RunInfo
from treadle.journal.standing import Standing, standing

Status = Standing | Literal["left"]


def status_of(line: RunInfo, driven: bool | None = None) -> Status:
    """How a run stands: one that has not ended and that nobody drives is "left"; None says that it is not known."""
    found = standing(line)
    return "left" if found == "running" and driven is False else found
