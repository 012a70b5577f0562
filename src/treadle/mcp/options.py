"""Options: how far a server is believed, and what it may ask for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from treadle.kernel.errors import Misuse
from treadle.mcp.asking import Ask
from treadle.tools import Effect
from treadle.tools.options import check_options


class Options(TypedDict, total=False):
    """How far a server is believed, and what it may ask for. By default it is not believed, and may ask for nothing.

    `trusted` is whether what it says of the effects of its tools counts; `effects` says it in its place, by its own
    names of the tools ("read", "idempotent", "write"); `only` names those that are wanted; `timeout` is the seconds
    that a call may take and `max_output` the characters of its result, as for any tool; `needs_approval` is whether a
    person must agree to each call that may do more than read; `ask` is asked what it wants to know of the person,
    or with "pause" the run waits for the answer, and a server that held the call open for it is called again with it;
    `roots` are the folders that it is told of; `sampling` answers, in the event loop of the run, when it wants a model
    asked, in the terms of the official package.
    """

    trusted: bool
    effects: Mapping[str, Effect]
    only: Sequence[str] | None
    timeout: float | None
    max_output: int
    needs_approval: bool
    ask: Ask | Literal["pause"] | None
    roots: Sequence[str | Path]
    sampling: Callable[..., Awaitable[Any]] | None


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(one, str) for one in value)


def _plain(folder: Any) -> Any:
    return str(folder) if isinstance(folder, Path) else folder


_FITS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "trusted": (lambda value: isinstance(value, bool), "true or false"),
    "needs_approval": (lambda value: isinstance(value, bool), "true or false"),
    "effects": (lambda value: isinstance(value, Mapping), "an effect for each name of a tool"),
    "only": (lambda value: value is None or _is_texts(value), "a list of names"),
    "roots": (lambda value: isinstance(value, (list, tuple)) and _is_texts([*map(_plain, value)]), "a list of folders"),
    "ask": (lambda value: value is None or value == "pause" or callable(value), 'a function, or "pause"'),
    "sampling": (lambda value: value is None or callable(value), "a function"),
}
"""What an option can be, and how that is told: a word such as "false" must not count as a yes."""


def check_server_options(options: Options) -> None:
    """Refuses options that there are not, or that cannot be."""
    for name in options:
        if name not in Options.__annotations__:
            near = "; what a program is started with follows it: stdio(program, argument, …, name=…)"
            known = f"; it takes {', '.join(Options.__annotations__)}"
            raise Misuse(f"MCPServer takes no option {name!r}{near if name in ('args', 'arguments') else known}")
    given: Mapping[str, object] = options
    for name, (fits, words) in _FITS.items():
        if name in given and not fits(given[name]):
            raise Misuse(f"MCPServer takes {name}= as {words}; it was given {given[name]!r:.100}")
    told: dict[str, Any] = {key: options[key] for key in ("timeout", "max_output") if key in options}
    for effect in {"write", *options.get("effects", {}).values()}:
        check_options({"effect": effect, **told}, "MCPServer")  # type: ignore[typeddict-item]  # this checks it
