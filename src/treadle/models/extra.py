"""Extra: the settings of a request, joined and looked at, and the caller's own fields put into its body.

Pure. Neighbours: the dialects, `treadle.kernel.messages.ModelSettings.extra`.
"""

import reprlib
from typing import Final

from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json, ModelSettings

LENGTHS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""What providers call the most tokens that a reply may have."""

REPLIES: Final = ("n", "best_of", "candidate_count", "candidateCount")
"""What providers call the number of replies; all are billed."""


def check_extra(extra: Json | None, where: str = "settings.extra") -> None:
    """Refuses fields that make a request another one than is reckoned with, recorded and read.

    Args:
        where: what has these fields, in words for whoever wrote them.

    Raises:
        Misuse: `extra` names another model, asks for several replies or for a job in the background, or bounds the
            reply by what is no number of tokens.
    """
    if not extra:
        return
    if "model" in extra:
        raise Misuse(
            f"{where} has a field 'model' ({reprlib.repr(extra['model'])}): name the model where it is made, or "
            "in StepSettings(model=…) for one step, so that its price and its limits are known"
        )
    for inside in ("generation_config", "generationConfig"):
        check_extra(extra[inside] if isinstance(extra.get(inside), dict) else None, where)
    for name in REPLIES:
        if name in extra and (isinstance(extra[name], bool) or extra[name] not in (None, 1)):
            raise Misuse(
                f"{where} asks for {name}={reprlib.repr(extra[name])} replies, and of all that are billed one "
                "is read: leave it out, and ask again for another reply"
            )
    if extra.get("background"):
        raise Misuse(
            f"{where} asks for background=True, a job whose reply nobody comes back for: leave it out, and give "
            "the model Timeouts(total=…, first_token=…) that are long enough"
        )
    for name in LENGTHS:
        most = extra.get(name)
        if name in extra and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise Misuse(f"{where} takes {name} as a whole number from 1; it was given {reprlib.repr(most)}")


def longest(settings: ModelSettings) -> int | None:
    """The most tokens that `settings` let a reply have, in whichever of its fields; None if none says."""
    extra = settings.extra
    if settings.max_tokens is None and not extra:
        return None
    given = [settings.max_tokens, *((extra or {}).get(name) for name in LENGTHS)]
    return min((most for most in given if isinstance(most, int) and not isinstance(most, bool)), default=None)


def merged(defaults: ModelSettings, given: ModelSettings) -> ModelSettings:
    """The settings of `given`, and those of `defaults` where it is silent; the extra fields of both."""
    if defaults == ModelSettings():
        return given
    values = {field: getattr(given, field) for field in given.__struct_fields__}
    filled = {field: getattr(defaults, field) if value is None else value for field, value in values.items()}
    if defaults.extra and given.extra:
        filled["extra"] = defaults.extra | given.extra
    return ModelSettings(**filled)


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

    Raises:
        Misuse: a field may not stand there, as `check_extra` says.
    """
    check_extra(extra)
    for name, value in (extra or {}).items():
        present = body.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            body[name] = present | value
        elif isinstance(present, list) and isinstance(value, list):
            body[name] = [*present, *value]
        else:
            body[name] = value
