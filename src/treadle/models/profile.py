"""Profile: what a model can do, as far as anybody knows; said in one place, passed on by what stands around a model.

Pure. A model says it by its property `profile`; whoever needs to know asks `profile_of(model)`, and nothing else.
Neighbours: `treadle.models.port`, what a model is asked; `treadle.models.codec`, where each dialect fills its part in.
"""

import reprlib
from collections.abc import Iterable
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.errors import Misuse

OutputMode = Literal["native", "tool", "prompted"]
"""How a model is asked for an answer of a type: its provider holds it to a schema, a final tool, or in words alone."""

MOST_TOKENS: Final = 2**53
"""More tokens than any request or reply has; up to here a float that counts is exact."""


class ModelProfile(Struct, frozen=True, kw_only=True, gc=False):
    """What a model can do. What nobody knows is None, and is not the same as no.

    Attributes:
        context_window: the most tokens that a request may have.
        output: how the model is best asked for an answer of a type.
        output_beside_tools: the same, where there are tools beside it.
        tools: whether it can be given tools; False for a model that needs `TextTools` around it.
        parallel_calls: whether one reply may ask for several tools.
        prefix_cache: whether its provider keeps what requests begin with, so that the same beginning costs less.
        thinking: whether it can be told how hard to think, by `ModelSettings.thinking`.
        stop: whether it can be told texts at which to stop, by `ModelSettings.stop`.

    Raises:
        Misuse: a value is of another type, or no number of tokens.
    """

    context_window: int | None = None
    output: OutputMode = "prompted"
    output_beside_tools: OutputMode = "prompted"
    tools: bool | None = None
    parallel_calls: bool | None = None
    prefix_cache: bool | None = None
    thinking: bool | None = None
    stop: bool | None = None

    def __post_init__(self) -> None:
        window = self.context_window
        if window is not None and tokens_in(window) is None:
            raise Misuse(
                f"ModelProfile takes context_window as a number of tokens, or None; it was given {reprlib.repr(window)}"
            )
        for name in ("output", "output_beside_tools"):
            if getattr(self, name) not in get_args(OutputMode):
                words = ", ".join(map(repr, get_args(OutputMode)))
                raise Misuse(
                    f"ModelProfile takes {name} as one of {words}; it was given {reprlib.repr(getattr(self, name))}"
                )
        for name in ("tools", "parallel_calls", "prefix_cache", "thinking", "stop"):
            if getattr(self, name) not in (None, True, False):
                raise Misuse(
                    f"ModelProfile takes {name} as True, False, or None where nobody knows; it was given "
                    f"{reprlib.repr(getattr(self, name))}"
                )

    def output_mode(self, tools: bool) -> OutputMode:
        """How the model is best asked for an answer of a type, with tools beside it or without."""
        return self.output_beside_tools if tools else self.output


def profile_of(model: object) -> ModelProfile:
    """What `model` says that it can do.

    One that has no `profile`, as somebody's own may, can say single things instead: `context_window`, and
    `output_mode(tools)`. What it says that cannot be is taken for nothing said.

    Raises:
        Misuse: its `profile` is no `ModelProfile`.
    """
    said: object = getattr(model, "profile", None)
    if isinstance(said, ModelProfile):
        return said
    if said is not None:
        raise Misuse(
            f"the profile of {getattr(model, 'name', type(model).__name__)} must be a ModelProfile(…); it is "
            f"{reprlib.repr(said)}"
        )
    ask: Any = getattr(model, "output_mode", None)
    window = tokens_in(getattr(model, "context_window", None))
    if ask is None:
        return ModelProfile(context_window=window)
    return ModelProfile(context_window=window, output=ask(False), output_beside_tools=ask(True))


def profile_of_any(profiles: Iterable[ModelProfile]) -> ModelProfile:
    """What can be counted on where any of several models may answer.

    The context is the largest, for a request that is too long for one goes to another; all else is what each can do.
    """
    all_of = list(profiles)
    return ModelProfile(
        context_window=max([one.context_window for one in all_of if one.context_window], default=None),
        output=_weakest([one.output for one in all_of]),
        output_beside_tools=_weakest([one.output_beside_tools for one in all_of]),
        tools=_each([one.tools for one in all_of]),
        parallel_calls=_each([one.parallel_calls for one in all_of]),
        prefix_cache=_each([one.prefix_cache for one in all_of]),
        thinking=_each([one.thinking for one in all_of]),
        stop=_each([one.stop for one in all_of]),
    )


def profile_with_window(profile: ModelProfile, window: int | None) -> ModelProfile:
    """`profile` with the context window that a table has, which is nothing where that cannot be."""
    return replace(profile, context_window=tokens_in(window))


def tokens_in(value: object) -> int | None:
    """The number of tokens that `value` is; None where it is no such number."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and isinstance(value, int) and 0 < value <= MOST_TOKENS else None


def _weakest(modes: list[OutputMode]) -> OutputMode:
    return "prompted" if "prompted" in modes else "tool" if "tool" in modes else "native"


def _each(known: list[bool | None]) -> bool | None:
    """Whether each can: not if one cannot, unknown if of one nobody knows."""
    return False if False in known else None if None in known else True
