"""`treadle costs`: what a run has spent, from its journal and those of the runs below it."""

import asyncio

import click

from treadle.cli import completion
from treadle.cli.storage import find_run, journal_option, no_runs, opened
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, print_json
from treadle.drivers.purse.spending import By, Charge, Share, Spending, spending_of

_ITSELF, _UNKNOWN = "(the run itself)", "(unknown)"


@click.command(short_help="Tell what a run has spent, by model, tool, agent or step.")
@click.argument("run", shell_complete=completion.runs)
@journal_option
@click.option(
    "--by", type=click.Choice(["model", "tool", "agent", "step"]), help="Add up by this. Default: every call."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object.")
def costs(run: str, journal: str | None, by: By | None, as_csv: bool, as_object: bool) -> int:
    """Tell what RUN has spent, the runs that work for it included: tokens and dollars of every model call.

    RUN is its id, a beginning of it that no other run has, or "last".
    """
    if as_csv and as_object:
        raise click.UsageError("--csv and --json are two forms of the same; leave one out")
    spending = asyncio.run(_spending(journal, run))
    if as_csv:
        # As bytes, so that its ends of lines stay what they are.
        click.echo(spending.to_csv(by).encode(), nl=False)
        return 0
    if as_object:
        print_json(spending.to_dict(by))
        return 0
    if by is None:
        _print_charges(spending)
    else:
        _print_shares(spending, by)
    click.echo(f"\nin all {in_words(spending.total)}")
    if spending.shared:
        whose = spending.shared[0].run_id
        click.echo(f"before that, paid by run {clean(whose)} of which it is a fork: {in_words(spending.shared_total)}")
    return 0


async def _spending(journal: str | None, run: str) -> Spending:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        return await spending_of(await kept.read(await find_run(kept, run)), kept)


def _print_charges(spending: Spending) -> None:
    rows = [
        (one.top_step, one.purpose, one.model or _UNKNOWN, one.agent or _UNKNOWN, one.tool, *_amounts(one))
        for one in spending.charges
    ]
    columns = ["step", "for", "model", "agent", "below", "in", "out", "cost"]
    print_table(columns, rows, right=["in", "out", "cost"], whole=["for", "model", "agent", "below"])


def _print_shares(spending: Spending, by: By) -> None:
    nameless = _ITSELF if by == "tool" else _UNKNOWN
    calls = ["calls"] if by == "tool" else []
    rows = [(one.name or nameless, *([one.calls or ""] if calls else ()), *_amounts(one)) for one in spending.by(by)]
    print_table([by, *calls, "in", "out", "cost"], rows, right=[*calls, "in", "out", "cost"])


def _amounts(of: Charge | Share) -> tuple[str, str, str]:
    about = "~" if of.estimated else ""
    cost = "unknown" if of.cost is None else f"{about}${of.cost:f}"
    return f"{about}{of.usage.input_tokens:,}", f"{about}{of.usage.output_tokens:,}", cost


def in_words(of: Share) -> str:
    """Tokens and dollars in a line."""
    about = "about " if of.estimated else ""
    tokens = f"{about}{of.usage.input_tokens:,} tokens in, {of.usage.output_tokens:,} out"
    if of.cost is not None:
        return clean(f"{tokens}, {about}${of.cost:f}")
    return clean(f"{tokens}{', at a cost that is not known' if of.usage.total_tokens else ''}")
