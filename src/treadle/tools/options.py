"""How a tool may be run: the options that its author gives, and what is refused of them."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypedDict

from treadle.signatures import takes
from treadle.tools.errors import BadTool, did_you_mean, nearest
from treadle.tools.failure import SaysError
from treadle.tools.output import MOST_OUTPUT
from treadle.tools.reconcile import Reconcile

Effect = Literal["read", "idempotent", "write"]
NeedsApproval = bool | Callable[[dict[str, Any]], bool | Awaitable[bool]]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFECTS = ("read", "idempotent", "write")


class ToolOptions(TypedDict, total=False):
    """How a tool may be run; the meanings are those of the attributes of `Tool`."""

    effect: Effect
    timeout: float | None
    retries: int
    alone: bool
    resource: str | None
    max_output: int
    needs_approval: NeedsApproval
    polling: bool
    parallel: bool
    thread: bool
    errors: SaysError | None
    reconcile: Reconcile | None
    keep: bool


def check_name(name: str, label: str, description: str = "") -> None:
    """Raises `BadTool` if providers would refuse `name`, or what the model is told is no text."""
    if not isinstance(description, str):
        raise BadTool(f"{label}: description={description!r:.100}, but it is a text")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadTool(
            f"{label}: {name!r:.100} cannot be the name of a tool; give name= with 1 to 64 letters, digits, '_' or '-'"
        )


def check_options(options: ToolOptions, label: str) -> None:
    """Raises `BadTool` if an option is unknown or has a value that makes no sense."""
    given: dict[str, Any] = dict(options)
    known = ToolOptions.__annotations__
    for key in given:
        if key not in known:
            raise BadTool(
                f"{label}: there is no option {key!r}{did_you_mean(nearest(key, known))} "
                f"(there are: {', '.join(known)})"
            )
    effect, timeout, retries = given.get("effect", "write"), given.get("timeout", 60.0), given.get("retries", 0)
    if effect not in _EFFECTS:
        raise BadTool(f"{label}: effect={effect!r}, but it is one of {', '.join(map(repr, _EFFECTS))}")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise BadTool(f"{label}: timeout={timeout!r}, but it is a number of seconds above 0, or None for no limit")
    if type(retries) is not int or retries < 0:
        raise BadTool(f"{label}: retries={retries!r}, but it is a number from 0")
    if retries and effect == "write":
        raise BadTool(
            f"{label}: a tool that writes is never tried again, as nobody knows how far it came; remove "
            f'retries={retries}, or say effect="read" or effect="idempotent" if running it twice does no harm'
        )
    max_output = given.get("max_output", 50_000)
    if type(max_output) is not int or not 100 <= max_output <= MOST_OUTPUT:
        raise BadTool(
            f"{label}: max_output={max_output!r}, but it is a number of characters from 100 to {MOST_OUTPUT:,}"
        )
    for key in ("alone", "polling", "parallel", "thread", "keep"):
        if type(given.get(key, False)) is not bool:
            raise BadTool(f"{label}: {key}={given[key]!r}, but it is True or False")
    errors = given.get("errors")
    if errors is not None and not (callable(errors) and takes(errors, None)):
        raise BadTool(
            f"{label}: errors={given['errors']!r}, but it is a function of the returned value, such as says_error"
        )
    reconcile = given.get("reconcile")
    if reconcile is not None:
        if not callable(reconcile) or not takes(reconcile, None):
            raise BadTool(f"{label}: reconcile={reconcile!r}, but it is a function that takes a ToolContext")
        if effect != "write":
            raise BadTool(
                f"{label}: reconcile= is for a tool that writes; with effect={effect!r} a call that a crash cut off is "
                "run again, and nobody has to find out"
            )
    resource, approval = given.get("resource"), given.get("needs_approval", False)
    if resource is not None and (not isinstance(resource, str) or not resource):
        raise BadTool(f"{label}: resource={resource!r}, but it is a name, or None")
    if type(approval) is not bool and not (callable(approval) and takes(approval, None)):
        raise BadTool(f"{label}: needs_approval={approval!r}, but it is True, False, or a function of the arguments")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
