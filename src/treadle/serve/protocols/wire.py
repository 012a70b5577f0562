"""What the protocols share on the wire: results as JSON, numbers that a browser can hold, media, and posted fields."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from treadle.kernel.calls import plain
from treadle.kernel.messages import Content, File, Image, Json, Text
from treadle.kernel.stop import LIMIT_REASONS, Stop
from treadle.result import Pending, why_of
from treadle.serve.refused import Refused

HELD: Final = 2**53 - 1
"""The largest whole number that JavaScript tells from its neighbours."""

_WEB: Final = ("https://", "http://")

T = TypeVar("T")

Outcome = Literal["done", "waits", "paused", "calls", "limit", "length", "filtered", "cancelled", "failed"]


def exact(value: Any) -> Any:
    """`value` with whole numbers that a browser would round as texts: whoever allows a call must see all of it."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > HELD:
        return str(value)
    if isinstance(value, dict):
        return {key: exact(one) for key, one in value.items()}
    return [exact(one) for one in value] if isinstance(value, list) else value


def arguments_of(text: str) -> Any:
    """The arguments of a call for a browser: data, or the text itself where it is not JSON."""
    return exact(plain(text))


def result_of(content: str | Sequence[Content]) -> Any:
    """A call's result for a browser: data where the text is a JSON object or list, else the text; media as parts."""
    if not isinstance(content, str):
        return [_part(one) for one in content]
    return arguments_of(content) if content[:1] in ("{", "[") else content


def text_result(content: str | Sequence[Content]) -> str:
    """A call's result as text; of media what they are."""
    if isinstance(content, str):
        return content
    return "\n".join(one.text if isinstance(one, Text) else f"[{one.media_type}]" for one in content)


def address(media: Image | File) -> str:
    """Where an image or file is: its address, or itself as a data URL."""
    if media.url is not None:
        return media.url
    return f"data:{media.media_type};base64,{base64.b64encode(media.data or b'').decode()}"


def _part(one: Content) -> Json:
    if isinstance(one, Text):
        return {"type": "text", "text": one.text}
    return {"type": "file", "mediaType": one.media_type, "url": address(one)}


def outcome(stop: Stop, pending: Sequence[Pending] = ()) -> Outcome:
    """What a stop is to a client that knows a handful of them; `pending` are the calls that the run waits for."""
    match stop.reason:
        case "answered" | "condition":
            return "done"
        case "waiting":
            return "waits" if pending else "paused"
        case "external_tool":
            return "calls"
        case "length":
            return "length"
        case "content_filter" | "refusal":
            return "filtered"
        case "cancelled" | "running":
            return "cancelled"
        case reason if reason in LIMIT_REASONS:
            return "limit"
        case _:
            return "failed"


def failed(failure: tuple[str, str] | None) -> str:
    """What a client is told of a run that a model's failure ended. What the provider said stays in the journal."""
    kind = f" ({failure[0]})" if failure else ""
    return f"The run ended because the model failed{kind}."


def unfinished(stop: Stop) -> str:
    """What a client is told of a run that ended, or was paused, before it was done."""
    if stop.reason == "waiting":
        return f"The run is paused: {stop.detail}. {stop.advice}".strip()
    return f"The run stopped before it was done: {why_of(stop)}. {stop.advice}".strip()


class Verdict(Struct, frozen=True):
    """What a person said on a call: whether it may run, why not, and with which arguments in place of the model's."""

    approved: bool
    reason: str = ""
    arguments: Json | None = None


class Decisions(Struct, frozen=True):
    """What of a post decides on calls that a run waits for, each under its key."""

    approve: dict[str, Json | None]
    deny: dict[str, str]
    results: dict[str, Any]

    def __bool__(self) -> bool:
        return bool(self.approve or self.deny or self.results)

    @classmethod
    def of(
        cls, pending: Iterable[Pending], verdicts: Mapping[str, Verdict], results: Mapping[str, tuple[Any, bool]]
    ) -> "Decisions":
        """Of verdicts and results by key, those that fit what waits; a result comes with whether it is an error."""
        found = cls({}, {}, {})
        for one in pending:
            verdict, result = verdicts.get(one.key), results.get(one.key)
            if one.kind == "result":
                if result is not None:
                    value, is_error = result
                    found.results[one.key] = {"error": True, "message": value} if is_error else value
            elif verdict is not None and verdict.approved:
                found.approve[one.key] = verdict.arguments
            elif verdict is not None:
                found.deny[one.key] = verdict.reason
        return found


def name_below(run_id: str) -> str:
    """What the calls of a run below another have before their ids: the call that it works on, and which time that was
    made. A call that is made again has another run, whose calls may be called as those of the first."""
    return f"{run_id.rpartition('.')[2]}/"


def name_of(pending: Pending) -> str:
    """What a call that waits is called: its id, or for one of a run below the path to it."""
    if not pending.run_id:
        return pending.plain
    *path, call = pending.call_id.split("/")
    runs = [*[""] * len(path), *pending.run_id.split(".")][::-2][: len(path)][::-1]
    names = [run if run.partition("+")[0] == one else one for one, run in zip(path, runs, strict=True)]
    return "/".join([*names, call])


def approval_id(run_id: str, pending: Pending) -> str:
    """What the question whether a call may run is called: the run, the call, and a fingerprint of its arguments."""
    return f"{run_id}:{pending.key}"


def bad(where: str, message: str, advice: str = "") -> Refused:
    """A request that cannot be right."""
    return Refused("bad_request", f"{where} {message}", advice)


def decide(found: dict[str, T], name: str, what: T, where: str) -> None:
    """Puts what is decided under `name` among what was found.

    Raises:
        Refused: something else stands there. Nobody can tell which of the two is meant.
    """
    if found.setdefault(name, what) != what:
        raise bad(where, f"decides on {name!r:.200} in two ways at once")


def undecided() -> Refused:
    """What was decided fits nothing that the run waits for, or not all of it does."""
    return Refused(
        "conflict",
        "nothing, or not all, of what was posted decides on a call that the run waits for, and nothing was done",
        "A verdict holds for the call and the arguments that were shown. Look at the run again.",
    )


def object_at(body: Any, where: str) -> Json:
    """`body`, which must be a JSON object."""
    if not isinstance(body, dict):
        raise bad(where, f"must be a JSON object, and is {_kind(body)}")
    return body


def text_at(body: Json, name: str, where: str, default: str | None = None) -> str:
    """The text `body[name]`; `default` where it is left out, if there is one."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise bad(f"{where}.{name}", f"must be a text, and is {_kind(value)}")
    return value


def list_at(body: Json, name: str, where: str) -> list[Any]:
    """The list `body[name]`; empty where it is left out."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad(f"{where}.{name}", f"must be a list, and is {_kind(value)}")
    return value


def flag_at(body: Json, name: str, where: str, default: bool | None = None) -> bool:
    """The boolean `body[name]`; `default` where it is left out, if there is one."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, bool):
        raise bad(f"{where}.{name}", f"must be true or false, and is {_kind(value)}")
    return value


def media(url: str, media_type: str | None, name: str, where: str) -> Image | File:
    """An image or a file that was posted: a data URL, or an address that nobody here opens."""
    data: bytes | None = None
    if url.startswith("data:"):
        media_type, data = _opened(url, media_type, where)
    elif not url.startswith(_WEB):
        raise bad(where, "must be a data: or https: URL")
    kind = media_type or "application/octet-stream"
    address = None if data is not None else url
    if kind.startswith("image/"):
        return Image(data, address, kind)
    return File(data, address, kind, name or "file")


def check_addresses(given: str | Iterable[Content]) -> None:
    """Looks where what was posted is to be fetched from, by whoever asks the model and with rights that no user has.

    Raises:
        ValueError: it is in no place of the Web, such as a file or a bucket of the server's.
    """
    for one in () if isinstance(given, str) else given:
        if not isinstance(one, Text) and one.url is not None and not one.url.startswith(("data:", *_WEB)):
            raise ValueError("a url in input must be a data: or https: URL")


def _opened(url: str, media_type: str | None, where: str) -> tuple[str, bytes]:
    head, comma, body = url[5:].partition(",")
    if not comma:
        raise bad(where, "is a data: URL without data")
    kind, *parameters = head.split(";")
    try:
        raw = unquote_to_bytes(body)
        data = base64.b64decode(raw, validate=True) if "base64" in parameters else raw
    except (binascii.Error, ValueError):
        raise bad(where, "is a data: URL that is no base64") from None
    return media_type or kind or "text/plain", data


def said(parts: Sequence[Content], where: str) -> str | tuple[Content, ...]:
    """What a person said, of the parts it was posted in.

    Raises:
        Refused: there is nothing in it.
    """
    if not any([not isinstance(part, Text) or part.text.strip() for part in parts]):
        raise bad(where, "says nothing")
    if all([isinstance(part, Text) for part in parts]):
        return "\n".join([part.text for part in parts if isinstance(part, Text)])
    return tuple(parts)


def _kind(value: Any) -> str:
    words = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        Decimal: "a number",
    }
    return "missing" if value is None else words.get(type(value), "something else")
