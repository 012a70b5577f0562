"""Hierarchy: values of a dimension in groups, these in larger ones, such as accounts or companies; plain frozen data.

    Hierarchy(name="result", of="account", groups={"Result": ("Revenue", "Costs"), "Revenue": ("800100", "800200")})

Neighbours: `tree` (what follows from it for the keys of a question), `subtotals` (the figures of its groups).
"""

from collections.abc import Mapping

from msgspec import Struct


class Hierarchy(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Groups of values, written out, or the source that holds them.

    Attributes:
        name: what people and models call it.
        of: the dimension whose values it groups.
        groups: by group what is right below it: values of the dimension, and other groups. What is a group and a value
            too, such as a company that owns others, counts with the rows of its own.
        source: in place of `groups` the source that holds them: a row for everything that is right below a group.
        group: that source's dimension with the group; rows without one name what is below none.
        member: its dimension with what is right below the group.
        description: what it is.
    """

    name: str
    of: str
    groups: Mapping[str, tuple[str, ...]] = {}
    source: str = ""
    group: str = "group"
    member: str = "member"
    description: str = ""

    def __post_init__(self) -> None:
        told = f"hierarchy {self.name!r}"
        if bool(self.groups) == bool(self.source):
            raise ValueError(f"{told} needs its 'groups', or the 'source' that holds them, and not both")
        for group, members in self.groups.items():
            if not group.strip() or not all(member.strip() for member in members):
                raise ValueError(f"{told} has an empty name in it")
