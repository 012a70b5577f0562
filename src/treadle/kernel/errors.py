"""Errors that every room knows: a wrong use of treadle, an event that cannot be, and what nobody may swallow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import StructMeta


class Misuse(ValueError):
    """A call or configuration that cannot be right; the message says what would be."""


class PassesThrough(Exception):
    """The run cannot go on in this process, so that no tool, hook or model may swallow it."""


class IllegalEvent(Exception):
    """An event that cannot follow on the state it was given to."""


class Named(StructMeta):
    """Says what was meant by an argument that a struct does not take; itself it says only that it is unexpected."""

    _others_words: Mapping[str, str] = {}

    def called(cls, name: str) -> str | None:
        """The field that is called `name`, here or elsewhere, also with "max_" before it; None if none is."""
        plain = name if name in cls.__struct_fields__ else name.removeprefix("max_")
        return plain if plain in cls.__struct_fields__ else cls._others_words.get(plain)

    # Type checkers know the arguments from the fields, which a `__call__` would hide from them.
    if not TYPE_CHECKING:

        def __call__(cls, *given: Any, **named: Any) -> Any:
            """The struct. Raises `Misuse` where it has no such field."""
            for name in named:
                if name not in cls.__struct_fields__:
                    near = cls.called(name)
                    told = f"did you mean {near}=?" if near else f"it takes {', '.join(cls.__struct_fields__)}"
                    raise Misuse(f"{cls.__name__} takes no argument {name!r}; {told}")
            return super().__call__(*given, **named)
