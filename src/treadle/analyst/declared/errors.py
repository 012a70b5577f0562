"""What goes wrong in the analyst, told so that a person or a model can put it right.

`AnalystError` carries, beside its sentence, machine-readable hints (what was given, what is valid, what is nearest);
raised inside a tool it reaches the model with them. Its neighbour is `treadle.tools.errors`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from treadle.tools.errors import ToolError, did_you_mean, nearest

NOT_PLAIN = "\ue001"
"""What the engine's own error begins with where it is to become `NotPlain`."""

_DECLARED_AT = "_declared_at"


class AnalystError(ToolError):
    """A source, name, value or file is not what it should be; nothing was computed.

    Attributes:
        message: the sentence.
        hints: `argument`, `given`, `nearest`, `available` and the like, where they apply; JSON values only.
    """


class OfSeveral(AnalystError):
    """The engine could not compute with the data of one of several sources, and does not say which."""


class NotEnoughMemory(AnalystError):
    """The question needs more memory, or more room for what is spilled to disk, than it may use."""


class DiskFull(NotEnoughMemory):
    """There is no more room for what is spilled to disk: less memory at a time would not help."""


class HeldRows(AnalystError):
    """Lines of a file that may be rows stand in one pair of quotes, so that they would be one."""


class NotPlain(AnalystError):
    """Some text is not spelled as programs spell numbers, so that it has to be read with more care."""


@contextmanager
def declared_at(*names: str) -> Iterator[None]:
    """Says of what is raised here under which names of a declaration the fault stands, so that its line can be told.

    Within another, it says under which names below those.
    """
    try:
        yield
    except (AnalystError, ValueError) as error:
        setattr(error, _DECLARED_AT, names + place_of(error))
        raise


def place_of(error: Exception) -> tuple[str, ...]:
    """Returns the names that `declared_at` said; none where it said nothing."""
    names: tuple[str, ...] = getattr(error, _DECLARED_AT, ())
    return names


def unknown(what: str, argument: str, given: str, available: Iterable[str], where: str = "") -> AnalystError:
    """Returns the error for a name that does not exist, with the nearest that does.

    Args:
        what: the kind of thing, such as "source".
        argument: the argument that held the name.
        given: the name.
        available: the names there are.
        where: what was searched, such as "in source 'fi_reporting'".
    """
    names = sorted(available)
    near = nearest(given, names)
    place = f" {where}" if where else ""
    advice = did_you_mean(near) or f"; there are: {', '.join(names) or 'none'}"
    shown = given if len(given) <= 80 else f"{given[:80]}…"
    # Under the name that says what they are, and under the one that every error has.
    noun = what.rpartition(" ")[2]
    lists = {"available": names, f"available_{f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}": names}
    return AnalystError(
        f"there is no {what} {shown!r}{place}{advice}", argument=argument, given=shown, nearest=near, **lists
    )
