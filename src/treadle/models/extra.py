"""Extra: the caller's own fields put into a request body that a dialect has written.

Pure. Neighbours: the dialects, `treadle.kernel.messages.ModelSettings.extra`.
"""

from treadle.kernel.messages import Json


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
