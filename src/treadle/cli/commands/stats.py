"""`treadle stats`: figures over many runs."""

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

import click

from treadle.cli import completion
from treadle.cli.moments import in_order, moment
from treadle.cli.storage import journal_named, journal_option, opened
from treadle.cli.story import count
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, note, print_json
from treadle.journal.addresses import without_password
from treadle.timetravel.figures import Group, Money, Spread, Statistics
from treadle.timetravel.statistics import statistics

By = Literal["model", "agent", "tool", "day"]

_COUNTED = {"model": "calls", "agent": "runs", "tool": "calls", "day": "runs"}


@click.command(short_help="Add up many runs: how they ended, steps, tokens, time and cost.")
@click.option("--since", metavar="TIME", type=moment, help="Runs that began then or later: a date, or 2h, 7d.")
@click.option("--until", metavar="TIME", type=moment, help="Runs that began before that.")
@click.option(
    "--agent", metavar="NAME", shell_complete=completion.agents_of_runs, help="Runs of the agent of that name."
)
@click.option(
    "--model", metavar="NAME", shell_complete=completion.models_of_runs, help="Runs that began with that model."
)
@click.option("--by", type=click.Choice(["model", "agent", "tool", "day"]), help="Take them apart by this alone.")
@journal_option
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object.")
def stats(
    since: float | None,
    until: float | None,
    agent: str | None,
    model: str | None,
    by: By | None,
    journal: str | None,
    as_object: bool,
) -> int:
    """Add up the runs in the journal.

    Runs that work for others count with those. p50 and p95 are percentiles: half of the runs, and 95 of 100, took no
    more than that. A cost that is not known is told as unknown.
    """
    found = asyncio.run(_found(journal, since, until, agent, model))
    if as_object:
        print_json(found if by is None else getattr(found, f"by_{by}"))
        return 0
    if not found.runs:
        given = any(one is not None for one in (since, until, agent, model))
        note(f"no {'such runs' if given else 'runs yet'} in {without_password(journal_named(journal))}")
        return 0
    if by is None:
        _print_whole(found)
    for name in ("model", "agent", "tool", "day") if by is None else (by,):
        _print_groups(name, getattr(found, f"by_{name}"), heading=by is None)
    return 0


async def _found(
    journal: str | None, since: float | None, until: float | None, agent: str | None, model: str | None
) -> Statistics:
    in_order(since, until)
    async with opened(journal) as kept:
        if kept is None:
            return Statistics(0, {}, None, None, None, None, None, (), (), (), ())
        return await statistics(kept, since=since, until=until, agent=agent, model=model)


def _print_whole(found: Statistics) -> None:
    ended = ", ".join(f"{many:,} {reason}" for reason, many in found.ended.items())
    click.echo(clean(f"{count(found.runs, 'run')}: {ended}"))
    click.echo()
    rows = [
        ("steps", *_spread(found.steps, 0)),
        ("tool calls", *_spread(found.tool_calls, 0)),
        ("tokens", *_spread(found.tokens, 0)),
        ("seconds", *_spread(found.seconds, 2)),
        ("cost", *_money(found.cost)),
    ]
    print_table(["a run", "p50", "p95", "most", "in all"], rows, right=["p50", "p95", "most", "in all"])
    if found.cost is not None and found.cost.unknown:
        click.echo(
            f"\nthe cost of {count(found.cost.unknown, 'run')} is not known; p50, p95 and most are of the others"
        )


def _print_groups(by: str, groups: Iterable[Group], *, heading: bool) -> None:
    rows = [_row(by, group) for group in groups]
    if not rows:
        return
    if heading:
        click.echo()
    figures = ["failed", "s p50", "s p95"] if by == "tool" else ["failed", "tokens", "cost", "$ p50", "$ p95", "s p95"]
    if by in ("agent", "day"):
        figures.insert(1, "open")
    print_table([by, _COUNTED[by], *figures], rows, right=[_COUNTED[by], *figures])


def _row(by: str, group: Group) -> tuple[object, ...]:
    name = group.name or "(unknown)"
    _, p95, _, _ = _spread(group.seconds, 2)
    if by == "tool":
        return name, f"{group.count:,}", f"{group.failed:,}", _spread(group.seconds, 2)[0], p95
    *_, tokens = _spread(group.tokens, 0)
    half, most, _, cost = _money(group.cost)
    ended = [f"{group.failed:,}"] if by == "model" else [f"{group.failed:,}", f"{group.open:,}"]
    return name, f"{group.count:,}", *ended, tokens, cost, half, most, p95


def _spread(spread: Spread | None, digits: int) -> tuple[str, str, str, str]:
    if spread is None:
        return "", "", "", ""
    one, other, most, total = (f"{value:,.{digits}f}" for value in (spread.p50, spread.p95, spread.most, spread.total))
    return one, other, most, total


def _money(money: Money | None) -> tuple[str, str, str, str]:
    if money is None:
        return "", "", "", ""
    if money.p50 is None and not money.unknown:
        # Nothing took anything, so there is nothing to take percentiles of.
        return "", "", "", _dollars(money.total)
    return _dollars(money.p50), _dollars(money.p95), _dollars(money.most), _dollars(money.total)


def _dollars(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"${amount:f}"
