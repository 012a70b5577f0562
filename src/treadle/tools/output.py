"""What comes out of a tool call: what the model is shown and what the application gets.

A tool returns anything that has a JSON form, text, images and files, or a `ToolResult`; `encode` makes a `ToolOutput`
of it, no longer than the tool's `max_output`, and `encode_error` does the same for what went wrong. Text stays as it
is; everything else becomes JSON (None is `null`; NaN and infinities become the strings "NaN", "Infinity", "-Infinity",
as JSON has none; a `Decimal` becomes text with all its digits). Lone surrogates, such as those in the names of files,
have no UTF-8 form and would break the journal and the request to the provider: wherever text comes out they become `?`.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import isfinite
from pathlib import PurePath
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json, to_jsonable_python

from treadle.context.storable import storable_text
from treadle.context.unbroken import end_before, start_after
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Content, File, Image, Text, text_of
from treadle.tools.errors import ToolError, describe_exception, passing, place_of_exception, words_of

MOST_OUTPUT: Final = 20_000_000
"""Characters of text up to which a tool's `max_output` may be."""

MOST_ATTACHED: Final = 20_000_000
"""Bytes that a result's images and files, and their addresses, may have together: they are in each request after it."""

MOST_ITEMS: Final = 10_000_000
"""Items of what is no list yet, such as a `range`: a list of more would be longer than any text that is shown."""

MOST_DIGITS: Final = 100_000
"""Digits of a whole number, about: to write one takes the square of their number, in which nothing else runs."""

MOST_FOR_APP: Final = 20_000_000
"""Bytes of JSON that a `for_app` may have: it stands in the journal as it is."""

_PARTS = (Text, Image, File)
_TEXTS = ("url", "media_type", "name")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_KEEP = "the tool ran; only its result could not be kept. Ask it for less, if it can give less"
_ADVICE = (
    "the tool ran; only its result could not be shown. A tool returns text, numbers, lists, dicts, dataclasses, "
    "Pydantic models, Text, Image or File parts, or a ToolResult"
)


class _TooMuch(Exception):
    """A part of a result is over its bound; the message says which."""


class ToolResult:
    """What a tool returns when the application is to get something other than the model.

    Args:
        for_model: what the model is shown; anything that a tool may return.
        for_app: what the application gets beside it; anything that has a JSON form.
        is_error: whether the model is told that the call failed.
    """

    __slots__ = ("for_app", "for_model", "is_error")

    def __init__(self, for_model: Any, for_app: Any = None, is_error: bool = False) -> None:
        self.for_model = for_model
        self.for_app = for_app
        self.is_error = bool(is_error)

    def __repr__(self) -> str:
        return f"ToolResult(for_model={self.for_model!r}, for_app={self.for_app!r}, is_error={self.is_error!r})"


class ToolOutput(Struct, frozen=True):
    """The outcome of a tool call, ready to be journaled but for `value`.

    Attributes:
        content: what the model is shown.
        is_error: whether the call failed.
        app: what the application gets, made of JSON's own types.
        raised: type and last frame of an exception, such as "ValueError at shop.py:12 in pay"; not of a `ToolError`.
        value: what the function returned, for the application's own code in this process.
        in_doubt: whether nobody knows if it took effect.
        asks: the question that a person has to answer before it goes on, and what is then given back with the answer.
    """

    content: str | tuple[Content, ...]
    is_error: bool = False
    app: Any = None
    raised: str = ""
    value: Any = None
    in_doubt: bool = False
    asks: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """What the model is shown, without images and files."""
        return text_of(self.content)


def encode(value: Any, max_output: int, failed: bool = False) -> ToolOutput:
    """What a tool returned, as its output; an error output that names the type if it has no JSON form.

    Args:
        value: what the function returned.
        max_output: the most characters of text that the model is shown.
        failed: whether the value is known to say that the call failed; it is shown as it is all the same.
    """
    try:
        return _encoded(value, max_output, failed)
    except _TooMuch as error:
        return replace(encode_error(ToolError(f"{error}; {_KEEP}"), max_output), value=value)
    except BaseException as error:
        return _unencoded(value, error, max_output)


def _unencoded(value: Any, error: BaseException, max_output: int) -> ToolOutput:
    """The output of a tool whose result has no JSON form."""
    if passing(error) is not None:
        raise error
    named = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    told = ToolError(f"the result of type {named} is not JSON ({_fault(error)}); {_ADVICE}")
    return replace(encode_error(told, max_output), value=value)


def _fault(error: BaseException) -> str:
    return describe_exception(error).split(": ", 1)[-1][:300]


def _encoded(value: Any, max_output: int, failed: bool) -> ToolOutput:
    if not isinstance(value, ToolResult):
        return ToolOutput(_content(value, max_output), failed, None, "", value)
    app = None if value.for_app is None else _kept(value.for_app)
    shown = _error_form(value.for_model) if value.is_error else value.for_model
    return ToolOutput(_content(shown, max_output), value.is_error or failed, app, "", value)


def encode_given(value: Any, max_output: int, what: str) -> ToolOutput:
    """Likewise, for a value that is not a tool's; `what` names it.

    Raises:
        Misuse: it has no JSON form, or is larger than a result may be.
    """
    why = ""
    try:
        output = _encoded(value, max_output, failed=False)
    except _TooMuch as error:
        raise Misuse(f"{what}: {error}") from None
    except BaseException as error:
        output, why = _unencoded(value, error, max_output), f" ({_fault(error)})"
    says_error = isinstance(value, ToolResult) and value.is_error
    if output.is_error and not says_error:
        if isinstance(value, type):
            raise Misuse(f"{what} is a value, such as {value.__name__}(…); it was given the class {value.__qualname__}")
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise Misuse(f"{what} is a value that JSON can hold, or a ToolResult; it was given one of type {kind}{why}")
    return output


_NO_REASON: Final = "It failed, and no reason was given."


def encode_error(error: BaseException, max_output: int = 50_000) -> ToolOutput:
    """What went wrong, as {"error": true, "message": ...} with the hints of a `ToolError`; no traceback."""
    raised = ""
    if isinstance(error, ToolError):
        said = words_of(error.message)
        words = said if said.strip() else _NO_REASON
        shown = {"error": True, "message": words, **error.hints} | {"error": True, "message": words}
    else:
        shown = {"error": True, "message": describe_exception(error)}
        raised = storable_text(place_of_exception(error))
    try:
        text = _json(shown, _lenient)
    except Exception:
        shown = {name: _showable(value) for name, value in shown.items()}
        text = _json(shown, _lenient)
    if len(text) > max_output:
        text = _shortened(shown, max_output)
    return ToolOutput(cut(text, max_output), is_error=True, raised=raised)


def _showable(hint: Any) -> Any:
    """`hint`, or its type where JSON cannot say it: one that cannot be shown takes no other with it."""
    try:
        _json(hint, _lenient)
    except Exception:
        return f"({type(hint).__qualname__})"
    return hint


def _shortened(shown: Mapping[str, Any], most: int) -> str:
    """The JSON text of an error in `most` characters: its words are cut, and of its hints the short ones kept."""
    words = storable_text(str(shown["message"]))
    size = max(most // 2 - 40, 0)
    kept = {"error": True, "message": cut(words, size)}
    while size and len(_json(kept)) > most // 2:
        # What JSON writes in several characters, such as a quote, is cut shorter.
        size //= 2
        kept["message"] = cut(words, size)
    hints = {name: _json(value, _lenient) for name, value in shown.items() if name not in kept}
    for name in sorted(hints, key=lambda name: (name != "executed", len(hints[name]))):
        more = kept | {name: shown[name]}
        if len(_json(more, _lenient)) > most:
            break
        kept = more
    return _json(kept, _lenient)


def cut(text: str, limit: int) -> str:
    """`text` with its middle replaced by a note of how much was left out, if it is longer than `limit` characters.

    No figure is cut in two: a part of one would be read as another.
    """
    if len(text) <= limit:
        return text
    kept = limit - len(_left_out(len(text)))
    if kept < 2:
        return text[:limit]
    tail = kept // 3
    head, rest = end_before(text, kept - tail), start_after(text, len(text) - tail)
    return text[:head] + _left_out(rest - head) + text[rest:]


def _left_out(count: int) -> str:
    return f"\n[... {count} character{'' if count == 1 else 's'} left out ...]\n"


def _content(value: Any, max_output: int) -> str | tuple[Content, ...]:
    if isinstance(value, str):
        return cut(storable_text(value if type(value) is str else str.__str__(value)), max_output)
    if type(value) in _PARTS:
        value = (value,)
    if isinstance(value, (list, tuple)) and any(type(part) in _PARTS for part in value):
        return _parts(value, max_output)
    return cut(_json(value), max_output)


def _parts(values: list[Any] | tuple[Any, ...], max_output: int) -> tuple[Content, ...]:
    parts: list[Content] = []
    left, attached = max_output, 0
    for value in values:
        if isinstance(value, Image | File):
            attached += len(value.data or value.url or "")
            if attached > MOST_ATTACHED:
                raise _TooMuch(f"its images and files have more than {MOST_ATTACHED:,} bytes, which is the most")
            parts.append(_attached(value))
            continue
        text = value.text if isinstance(value, Text) else value if isinstance(value, str) else _json(value)
        text = cut(storable_text(text), left)
        left -= len(text)
        if text:
            parts.append(Text(text))
    return tuple(parts)


def _attached(part: Image | File) -> Image | File:
    texts = [(field, text) for field in _TEXTS if isinstance(text := getattr(part, field, None), str)]
    changed = {field: storable_text(text) for field, text in texts if not text.isascii()}
    return replace(part, **changed) if changed else part


def _json(value: Any, fallback: Callable[[Any], Any] | None = None) -> str:
    if fault := _endless(value):
        raise TypeError(fault)
    try:
        made = to_json(value, inf_nan_mode="strings", fallback=fallback or _known)
        # A Pydantic model has what is no number written as its configuration says: null, or not as JSON at all.
        if not any(word in made for word in (b"null", b"NaN", b"Infinity")):
            return made.decode()
    except ValueError as error:
        if "surrogates not allowed" not in str(error):
            raise
    return to_json(json_form(value, fallback)).decode()


def _endless(value: Any) -> str:
    """Why making JSON of `value` could take without an end, where nothing could stop that; empty if it does not.

    An iterator anywhere in it would be read to its end, and so would a whole number of millions of digits be written.
    """
    if type(value) in _SCALARS:
        return _TOO_LONG if _is_long_number(value) else ""
    left, seen = [value], set[int]()
    while left:
        one = left.pop()
        kind = type(one)
        inside: Iterable[Any]
        if kind is dict:
            inside = one.values()
        elif kind is list or kind is tuple:
            inside = one
        elif isinstance(one, Iterator):
            return "it can be read only once and may never end: return a list of its items"
        else:
            inside = _inside(one)
        kinds = set(map(type, inside))
        if int in kinds and any(map(_is_long_number, inside)):
            return _TOO_LONG
        if not _SCALARS.issuperset(kinds) and id(one) not in seen:
            seen.add(id(one))
            left.extend(inside)
    return ""


_TOO_LONG = f"a whole number in it has more than {MOST_DIGITS:,} digits: return it as a text, or less exactly"
_MOST_BITS = int(MOST_DIGITS * 3.33)


def _is_long_number(value: Any) -> bool:
    return type(value) is int and value.bit_length() > _MOST_BITS


def _inside(value: Any) -> Iterable[Any]:
    """What JSON would have of a value that is no plain container."""
    if isinstance(value, dict):
        return dict.values(value)
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if dataclasses.is_dataclass(value) or hasattr(type(value), "__pydantic_fields__"):
        return list(getattr(value, "__dict__", {}).values())
    return ()


def json_form(value: Any, fallback: Callable[[Any], Any] | None = None) -> Any:
    """`value` made of JSON's own types, so that a journal gives back what was put in. Raises if it has no such form."""
    try:
        made = to_jsonable_python(value, fallback=fallback or _known)
    except UnicodeEncodeError:  # a key of a dict
        made = to_jsonable_python(_clean_deep(value), fallback=fallback or _known)
    return _clean_deep(made)


def _kept(value: Any) -> Any:
    if fault := _endless(value):
        raise TypeError(f"for_app: {fault}")
    made = json_form(value)
    size = len(made) if isinstance(made, str) else len(to_json(made, fallback=_known))
    if size > MOST_FOR_APP:
        raise _TooMuch(f"its for_app has {size:,} bytes as JSON, and may have {MOST_FOR_APP:,}")
    return made


def _known(value: Any) -> Any:
    if isinstance(value, Image | File):
        raise TypeError(f"{type(value).__name__} goes at the top of a result or in its list, not inside other data")
    if isinstance(value, Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection):
        if len(value) > MOST_ITEMS:
            raise TypeError(f"its {type(value).__qualname__} has {len(value):,} items, and may have {MOST_ITEMS:,}")
        return list(value)
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


def _lenient(value: Any) -> Any:
    try:
        return _known(value)
    except Exception:
        return f"({type(value).__qualname__})"


def _clean_deep(value: Any) -> Any:
    """`value` without lone surrogates and what is no number, and without the types that may hide some."""
    match value:
        case str():
            return storable_text(str.__str__(value))
        case list() | tuple() | set() | frozenset():
            return [_clean_deep(item) for item in value]
        case Mapping():
            return {
                _clean_deep(key) if isinstance(key, str | PurePath) else key: _clean_deep(item)
                for key, item in value.items()
            }
        case PurePath():
            return storable_text(str(value))
        case float() if not isfinite(value):
            return to_json(value, inf_nan_mode="strings").decode().strip('"')
        case BaseException() | type():
            return value
        case Struct():
            return _clean_deep(msgspec.structs.asdict(value))
        case _ if dataclasses.is_dataclass(value):
            return {field.name: _clean_deep(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _ if hasattr(value, "__pydantic_serializer__"):
            return _clean_deep(value.__pydantic_serializer__.to_python(value, warnings=False))
        case _:
            return value


def _error_form(value: Any) -> Any:
    if isinstance(value, str):
        return {"error": True, "message": value if value.strip() else _NO_REASON}
    if isinstance(value, dict):
        return {"error": True, **value}
    return value
