"""The options that configure an agent, the same for every command that runs one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import wraps
from math import isfinite
from typing import Any

import click
from msgspec.structs import replace

from treadle.cli import completion
from treadle.cli.catalogs import sources_option
from treadle.cli.servers import mcp_option
from treadle.cli.setting_kinds import MOST, MOST_AMOUNT
from treadle.cli.storage import journal_option
from treadle.kernel.stop import Limits


@dataclass(frozen=True, slots=True)
class Options:
    """What the options say. None, or empty: not given."""

    agent: str | None
    model: str | None
    skill: tuple[str, ...]
    tools: tuple[str, ...]
    sources: str | None
    mcp: tuple[str, ...]
    max_steps: int | None
    max_tool_calls: int | None
    max_cost: float | None
    max_tokens: int | None
    timeout: float | None
    user: str | None
    journal: str | None

    def limits(self, over: Limits) -> Limits:
        """`over` with what the options say in its place."""
        given = {
            "steps": self.max_steps,
            "tool_calls": self.max_tool_calls,
            "usd": None if self.max_cost is None else Decimal(str(self.max_cost)),
            "tokens": self.max_tokens,
            "seconds": self.timeout,
        }
        return replace(over, **{name: value for name, value in given.items() if value is not None})

    def require_agent_alone(self, *, but: Collection[str] = ()) -> None:
        """Refuses what is given beside an agent that has its own.

        Args:
            but: the options that may stand beside it.

        Raises:
            click.UsageError: says what to leave out.
        """
        beside = {"--model": self.model, "--skill": self.skill, "--tools": self.tools, "--sources": self.sources}
        beside["--mcp"] = self.mcp
        given = [option for option, value in beside.items() if value and option not in but]
        if self.agent is not None and given:
            raise click.UsageError(f"--agent brings its own model and tools; leave out {' and '.join(given)}")


def require_one_wish(options: Options, no_journal: bool) -> None:
    """Refuses --journal beside --no-journal, where nothing would be read from it either.

    Raises:
        click.UsageError: both are given.
    """
    if no_journal and options.journal is not None:
        raise click.UsageError("--journal and --no-journal: which?")


def _finite(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is not a number of that kind; leave the option out for no such limit")
    return value


_POSITIVE = click.IntRange(min=1, max=MOST)
_COUNT = click.IntRange(min=0, max=MOST)
_AMOUNT = click.FloatRange(min=0, max=MOST_AMOUNT)
_OPTIONS = (
    click.option(
        "--agent", "-a", metavar="MODULE[:NAME]", shell_complete=completion.agents,
        help="Your own agent with all that it has: module:name or path.py:name, or the one of a module.",
    ),
    click.option(
        "--model", "-m", metavar="NAME", shell_complete=completion.models,
        help="provider:model, text:provider:model, offline, or module:object (TREADLE_MODEL).",
    ),
    click.option(
        "--skill", "-s", multiple=True, metavar="NAME", shell_complete=completion.skills,
        help="A built-in skill, one of .agents/skills, or a folder; none for none; repeatable (TREADLE_SKILLS).",
    ),
    click.option(
        "--tools", "-t", multiple=True, metavar="MODULE[:NAME]", shell_complete=completion.tools,
        help="Your tools: module:name or path.py:name, all of a module, or descriptions.json:module; repeatable.",
    ),
    sources_option,
    mcp_option,
    click.option(
        "--max-steps", type=_POSITIVE, metavar="N", help="Model calls at most (TREADLE_MAX_STEPS). Default: 20."
    ),
    click.option(
        "--max-tool-calls", type=_COUNT, metavar="N",
        help="Tool calls at most (TREADLE_MAX_TOOL_CALLS). Default: 100.",
    ),
    click.option(
        "--max-cost", type=_AMOUNT, callback=_finite, metavar="USD",
        help="Dollars at most (TREADLE_MAX_COST). Default: any.",
    ),
    click.option(
        "--max-tokens", type=_COUNT, metavar="N",
        help="Tokens at most, in and out (TREADLE_MAX_TOKENS). Default: any.",
    ),
    click.option(
        "--timeout", type=_AMOUNT, callback=_finite, metavar="SECONDS",
        help="Time at most (TREADLE_TIMEOUT). Default: 300.",
    ),
    click.option("--user", metavar="NAME", help="Whose run it is, for budgets of the agent that each user has."),
    journal_option,
)  # fmt: skip


MODEL_AND_TOOLS = _OPTIONS[1:5]
"""The options of an agent that the command line makes."""


def agent_options(command: Callable[..., Any], *, another_model: bool = False) -> Callable[..., Any]:
    """Gives a command the options of an agent, as one argument `options`.

    With `another_model`, --model may stand beside --agent, in place of that agent's.
    """

    @wraps(command)
    def packed(**given: Any) -> Any:
        own = {name: given.pop(name) for name in Options.__dataclass_fields__}
        options = Options(**own)
        options.require_agent_alone(but=("--model",) if another_model else ())
        return command(options=options, **given)

    decorated: Callable[..., Any] = packed
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
