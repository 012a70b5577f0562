"""Errors that every room knows: a wrong use of treadle, an event that cannot be, and what nobody may swallow."""


class Misuse(ValueError):
    """A call or configuration that cannot be right; the message says what would be."""


class PassesThrough(Exception):
    """The run cannot go on in this process, so that no tool, hook or model may swallow it."""


class IllegalEvent(Exception):
    """An event that cannot follow on the state it was given to."""
