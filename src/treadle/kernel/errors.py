"""What treadle itself raises: `Misuse` to whoever called it wrongly, and `PassesThrough` where a run cannot go on."""


class Misuse(ValueError):
    """A call or configuration that cannot be right; the message says what would be."""


class PassesThrough(Exception):
    """The run cannot go on in this process, so nobody may swallow this."""
