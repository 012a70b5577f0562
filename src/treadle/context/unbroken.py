"""Unbroken: where a long text may be cut, so that no figure in it is shown in part: 123 of 123,456 is another figure.

Pure. Used by whatever leaves out a part of a text for a model: the limit of a tool's output, and the context policies.
"""

MOST_MOVED = 64
"""Characters by which a cut is moved at most; what has no end within them, such as encoded data, is cut where it is."""

_ENDS = frozenset('"{}[];|<>')


def end_before(text: str, at: int) -> int:
    """The place nearest to `at`, not behind it, at which a beginning of `text` may end."""
    return _nearest(text, at, range(at, max(at - MOST_MOVED, -1), -1))


def start_after(text: str, at: int) -> int:
    """The place nearest to `at`, not before it, at which an end of `text` may begin."""
    return _nearest(text, at, range(at, min(at + MOST_MOVED, len(text) + 1)))


def _nearest(text: str, at: int, places: range) -> int:
    found = next((place for place in places if _between_words(text, place)), None)
    if found is None or (found in (0, len(text)) and not _in_figure(text, at)):
        # In a list without blanks, such as [1,2,3], only commas are left: they may group the digits of a figure too.
        return next((place for place in places if text[place - 1 : place] == ","), at)
    return found


def _between_words(text: str, place: int) -> bool:
    if place in (0, len(text)):
        return True
    before, after = text[place - 1], text[place]
    if before in _ENDS or after in _ENDS:
        return True
    # The digits of one figure may be grouped by blanks.
    if before.isspace():
        return not (after.isdigit() and text[place - 2 : place - 1].isdigit())
    return after.isspace() and not (before.isdigit() and text[place + 1 : place + 2].isdigit())


def _in_figure(text: str, place: int) -> bool:
    return any(one.isdigit() for one in text[max(place - 2, 0) : place + 2])
