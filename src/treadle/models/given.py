"""Given: whether the settings and options that an agent, a step or a model is given can be right.

They are looked at where they are given, so that what is wrong is told there, and no request goes out that says another
thing than was meant. Pure. Neighbours: `treadle.models.http_model`, `treadle.drivers.assembly`, which ask;
`treadle.models.extra`, which knows what `extra` may not hold.
"""

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings
from treadle.models.extra import check_extra
from treadle.models.timeouts import Timeouts

EFFORTS: Final = ("none", "low", "medium", "high")
LARGEST: Final = 2**63 - 1
"""The largest number that a journal keeps."""


def check_settings(settings: object) -> None:
    """Refuses settings of which some are of another type or range than providers take.

    Raises:
        Misuse: one of them does not fit; the message says which, and what would.
    """
    if not isinstance(settings, ModelSettings):
        raise Misuse(f"settings takes ModelSettings(…); it was given {reprlib.repr(settings)}")
    for name, fits, wanted in SETTINGS:
        value = getattr(settings, name)
        if value is not None and not fits(value):
            raise Misuse(f"ModelSettings takes {name} as {wanted}; it was given {reprlib.repr(value)}")
    check_extra(settings.extra)


def check_options(model: object, options: Mapping[str, Any]) -> None:
    """Refuses a model's name, and options of it, of another type than they have.

    Raises:
        Misuse: one of them does not fit; the message says which, and what would, and repeats no key.
    """
    if not isinstance(model, str) or not model.strip():
        raise Misuse(f"a model takes its name as a text, as the provider knows it; it was given {reprlib.repr(model)}")
    for name, fits, wanted in OPTIONS:
        value = options.get(name)
        if value is not None and not fits(value):
            raise Misuse(f"a model takes {name} as {wanted}; it was given a value of type {type(value).__name__}")
    if options.get("settings") is not None:
        check_settings(options["settings"])


def check_cache(cache: object, words: tuple[str, ...], key: object = None) -> None:
    """Refuses what no prompt cache is told by.

    Raises:
        Misuse: `cache` is none of `words`, or `key` is no text.
    """
    if cache is not None and not (isinstance(cache, str) and cache in words):
        raise Misuse(
            f"a model takes cache as one of {', '.join(map(repr, words))}, or None; it was given {reprlib.repr(cache)}"
        )
    if key is not None and not (isinstance(key, str) and key):
        raise Misuse(
            f"a model takes cache_key as a text, or None for one of treadle's; it was given {reprlib.repr(key)}"
        )


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _share(most: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


def _texts(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(one, str) and one for one in value)


def _named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _in_header(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.replace("\t", " ").isprintable()


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


Check = tuple[str, Callable[[Any], bool], str]

SETTINGS: Final[tuple[Check, ...]] = (
    ("max_tokens", _whole(1), "a whole number from 1"),
    ("temperature", _share(math.nextafter(math.inf, 0)), "a number from 0"),
    ("top_p", _share(1), "a number from 0 to 1"),
    ("stop", _texts, 'texts that say something, also a single one: stop=("END",)'),
    ("seed", _whole(-LARGEST), "a whole number"),
    (
        "thinking",
        lambda value: value in EFFORTS if isinstance(value, str) else _whole(0)(value),
        "one of 'none', 'low', 'medium' and 'high', or as a budget of tokens from 0 (an effort that only the provider "
        "knows goes into extra, in its own field)",
    ),
    ("parallel_tool_calls", _is(bool), "True or False"),
    ("extra", lambda value: isinstance(value, dict) and _named(value), "a dict of fields by their names"),
)
"""The settings, what they must be, and that in words."""

OPTIONS: Final[tuple[Check, ...]] = (
    ("base_url", _is(str), "an address such as http://localhost:8000/v1"),
    ("api_key", _is(str), "a text"),
    (
        "headers",
        lambda value: _named(value) and all(_in_header(one) for pair in value.items() for one in pair),
        "texts by their names, {'x-team': 'blue'}, in ASCII and of one line each",
    ),
    ("timeouts", _is(Timeouts), "Timeouts(total=…, first_token=…, between_tokens=…), in seconds"),
    ("streaming", _is(bool), "True or False"),
)
"""A model's options, likewise; the settings and the price are looked at apart."""
