"""Outlet: whether there is anybody yet to read what this process writes."""

import sys


def is_read(number: int) -> bool:
    """Whether somebody can still read what is written to the file of that number. Where nothing tells, somebody can."""
    if sys.platform == "win32":
        return True
    import select

    looking = select.poll()
    # Nothing is asked for but what is told in any case: that the other end is gone.
    looking.register(number, 0)
    # Some systems know nothing of terminals and devices, and call them no files.
    return not any(what & (select.POLLHUP | select.POLLERR) for _, what in looking.poll(0))
