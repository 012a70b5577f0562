"""Extra: the caller's own fields put into a request body that a dialect has written.

Pure. Neighbours: the dialects, `treadle.kernel.messages.ModelSettings.extra`.
"""

from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Json, ModelSettings

LENGTHS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What providers call the most tokens that a reply may have."""


def longest(settings: ModelSettings) -> int | None:
    """The most tokens that `settings` let a reply have, in whichever of its fields; None if none says."""
    extra = settings.extra
    if settings.max_tokens is None and not extra:
        return None
    given = [settings.max_tokens, *((extra or {}).get(name) for name in LENGTHS)]
    return min((most for most in given if isinstance(most, int) and not isinstance(most, bool)), default=None)


def held_to_length(settings: ModelSettings) -> ModelSettings:
    """`settings` in which no extra field goes round `max_tokens`."""
    extra = settings.extra
    if settings.max_tokens is None or not extra or not any(name in extra for name in LENGTHS):
        return settings
    rest = {name: value for name, value in extra.items() if name not in LENGTHS}
    return replace(settings, max_tokens=longest(settings), extra=rest or None)


def add_extra(body: Json, extra: Json | None) -> None:
    """Adds the fields of `extra` to `body`, in place.

    A field that the body has not got is set; an object is joined to the body's object and a list put after the body's
    list, one level deep, so that a provider's own tools stand beside the run's; anything else replaces the body's.
    """
    for name, value in (extra or {}).items():
        present = body.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            body[name] = present | value
        elif isinstance(present, list) and isinstance(value, list):
            body[name] = [*present, *value]
        else:
            body[name] = value
