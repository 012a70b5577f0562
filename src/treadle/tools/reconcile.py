"""Reconciling: a tool that writes finds out by itself what came of a call that was under way when a process died."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from treadle.tools.context import ToolContext


class Done(Struct, frozen=True):
    """The call was done, and this is its result: anything that the tool could have returned."""

    result: Any


class NotDone(Struct, frozen=True):
    """The call was not done: it is run again, with the same idempotency key."""


Found = Done | NotDone | None
"""What came of a call; None if that cannot be found out."""

Reconcile = Callable[[ToolContext[Any]], Found | Awaitable[Found]]
"""Finds it out, from the idempotency key and the arguments of the call that the context is about."""
