"""Plain: results as values of JSON.

Amounts are text, without an exponent, so that no digit is lost and people can read them. Readers that expect a number
get one, a float, with the text beside it:

    {"total_diff": 8000.0, "total_diff_exact": "8000.00"}
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import to_builtins

# What tells rows apart is text in any case.
_KEYS = ("key", "value")


def plain(value: object, *, numbers: bool = False) -> Any:
    """Returns values of JSON.

    Args:
        value: data as msgspec knows them, with decimals anywhere in them.
        numbers: decimals in mappings as floats, with their exact text under the name and `_exact`.
    """
    return _plain(to_builtins(value, builtin_types=(Decimal,), enc_hook=str), numbers)


def _plain(value: Any, numbers: bool) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item, numbers) for item in value)
    if not isinstance(value, Mapping):
        return value
    found: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, Decimal) and numbers and name not in _KEYS:
            found |= {name: float(item), f"{name}_exact": f"{item:f}"}
        else:
            found[name] = _plain(item, numbers and name not in _KEYS)
    return found
