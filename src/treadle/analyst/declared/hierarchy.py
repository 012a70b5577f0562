"""Hierarchy: values of a dimension in groups, these in larger ones, such as accounts or companies; plain frozen data.

    Hierarchy(name="result", of="account", groups={"Result": ("Revenue", "Costs"), "Revenue": ("800100", "800200")})

Neighbours: `tree` (what follows from it for the keys of a question), `subtotals` (the figures of its groups).
"""

import re
from collections.abc import Mapping

from msgspec import Struct

_SPAN = re.compile(r"\s*(?P<first>[^.\s](?:.*?[^.\s])?)\s*\.\.\s*(?P<last>[^.\s](?:.*?[^.\s])?)\s*", re.DOTALL)


class Span(Struct, frozen=True):
    """A range of values right below a group, both ends among them.

    Attributes:
        group: the group.
        first: the first value.
        last: the last value.
    """

    group: str
    first: str
    last: str

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


class Hierarchy(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Groups of values, written out, or the source that holds them.

    Attributes:
        name: what people and models call it.
        of: the dimension whose values it groups.
        groups: by group what is right below it: values of the dimension, ranges of them such as "800000..899999", and
            other groups. What is a group and a value too, such as a company that owns others, counts with the rows of
            its own.
        source: in place of `groups` the source that holds them: a row for everything that is right below a group.
        group: that source's dimension with the group; rows without one name what is below none.
        member: its dimension with what is right below the group.
        to: its dimension with the last value of a range that begins with the one in `member`, if it has such; in rows
            without one `member` stands for itself alone.
        description: what it is.
    """

    name: str
    of: str
    groups: Mapping[str, tuple[str, ...]] = {}
    source: str = ""
    group: str = "group"
    member: str = "member"
    to: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        told = f"hierarchy {self.name!r}"
        if bool(self.groups) == bool(self.source):
            raise ValueError(f"{told} needs its 'groups', or the 'source' that holds them, and not both")
        for group, members in self.groups.items():
            if not group.strip() or not all(member.strip() for member in members):
                raise ValueError(f"{told} has an empty name in it")
            for member in members:
                if ".." in member and (member.count("..") > 1 or not _SPAN.fullmatch(member)):
                    raise ValueError(f"{told}: {member!r} is no range such as 800000..899999")
        if self.to and not self.source:
            raise ValueError(f"{told} takes 'to' only with a 'source'; a range in 'groups' is written 800000..899999")


def span_of(group: str, member: str) -> Span | None:
    """Returns the range that a member of a group written out stands for; None if it is a name."""
    found = _SPAN.fullmatch(member) if ".." in member else None
    return found and Span(group, found["first"], found["last"])
