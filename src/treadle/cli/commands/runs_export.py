"""`treadle runs export` and `treadle runs import`: runs as lines of JSON, from one journal to another."""

import asyncio
import shutil
from tempfile import TemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import click

from treadle.cli import completion
from treadle.cli.exits import ExitCode
from treadle.cli.storage import find_run, journal_at, journal_named, journal_option, no_journal, no_runs, opened
from treadle.cli.terminal import note, set_off
from treadle.journal import JournalDamaged, export_runs, import_runs
from treadle.journal.addresses import without_password


@click.command("export", short_help="Print runs as lines of JSON.")
@click.argument("run", shell_complete=completion.runs, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every run of the journal.")
@click.option(
    "--otlp", is_flag=False, flag_value="", metavar="[URL]",
    help="Send them as traces of OpenTelemetry instead, to URL or where OTEL_EXPORTER_OTLP_ENDPOINT says.",
)  # fmt: skip
@click.option("--content", is_flag=True, help="With --otlp: send what was said, too.")
@journal_option
@click.pass_context
def export(
    context: click.Context,
    run: tuple[str, ...],
    everything: bool,
    otlp: str | None,
    content: bool,
    journal: str | None,
) -> int:
    """Print runs as lines of JSON, each with the runs of other agents that work for it, for `treadle runs import`.

    RUN is a run's id, a beginning of it that no other run has, or "last". A damaged run is left out and named; the exit
    code is 2 then. With --otlp they are sent as traces; a run that was sent before, or traced as it went, is the same
    run again for whoever receives it.
    """
    if otlp is not None and run == () and not everything and "://" not in otlp and otlp:
        # The option takes the word after it, which was meant for a run.
        otlp, run = "", (otlp,)
    if bool(run) == everything:
        raise click.UsageError("say which runs, or --all")
    if otlp is None and content:
        raise click.UsageError("--content goes with --otlp; without it all is printed")
    if otlp is not None:
        return asyncio.run(_send(run, otlp, content, journal or context.obj))
    return asyncio.run(_export(run, journal or context.obj))


@click.command("import", short_help="Put exported runs into the journal.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@journal_option
@click.pass_context
def import_(context: click.Context, file: str, journal: str | None) -> int:
    """Put the runs of FILE ("-" for standard input), which `treadle runs export` made, into the journal.

    All of them, or none: an export that was altered or cut off, is of a later version, or has a run that is in the
    journal already with other events, is refused. One that was killed may leave some: the same again puts in the rest.
    """
    with click.open_file(file, "rb") as given, TemporaryFile() as copy:
        if file != "-":
            return asyncio.run(_import(given, journal or context.obj))
        # It is read twice, which a pipe cannot be; the copy has no name, so that nobody else can read it.
        shutil.copyfileobj(given, copy)
        copy.seek(0)
        return asyncio.run(_import(copy, journal or context.obj))


async def _export(given: tuple[str, ...], named: str | None) -> int:
    damaged = 0

    def on_damage(error: JournalDamaged) -> None:
        nonlocal damaged
        damaged += 1
        note(f"left out: {error}")

    async with opened(named) as journal:
        if journal is None:
            raise no_runs(named, given[0]) if given else no_journal(named)
        run_ids = [await find_run(journal, one) for one in given]
        with click.open_file("-", "wb") as out:
            async for line in export_runs(journal, run_ids or None, on_damage=on_damage):
                out.write(line)
            out.flush()
    return ExitCode.USAGE if damaged else ExitCode.FINISHED


async def _send(given: tuple[str, ...], url: str, content: bool, named: str | None) -> int:
    from treadle.telemetry import send

    damaged = list[str]()

    def on_damage(error: JournalDamaged) -> None:
        damaged.append(str(error))
        note(f"left out: {error}")

    exporter = _exporter(url)
    try:
        async with opened(named) as journal:
            if journal is None:
                raise no_runs(named, given[0]) if given else no_journal(named)
            run_ids = [await find_run(journal, one) for one in given] or None
            sent = await send(journal, run_ids, exporter=exporter, content=content, on_damage=on_damage)
    except ConnectionError as error:
        raise click.UsageError(set_off(f"nothing, or not all, was sent: {error}")) from error
    finally:
        exporter.shutdown()
    note(f"{sent.spans} span{'' if sent.spans == 1 else 's'} of {sent.runs} run{'' if sent.runs == 1 else 's'} sent")
    for run_id in sent.under_way:
        note(f"{run_id} is under way: its own span is sent once it has ended, or paused")
    return ExitCode.USAGE if damaged else ExitCode.FINISHED


def _exporter(url: str) -> Any:
    """What sends spans to `url`; where none is given, to where the environment says."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from requests import Session
    except ImportError as error:
        raise click.UsageError("--otlp needs OpenTelemetry's exporter: pip install 'treadle[otlp]'") from error
    # The exporter takes a redirection, which it does not follow, for an answer that all was received.
    session = Session()
    session.hooks["response"].append(_refuse_redirection)
    return OTLPSpanExporter(_endpoint(url) if url else None, session=session)


def _endpoint(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        # What stands before an @ may be a password.
        shown = f"…@{url.rpartition('@')[2]}" if "@" in url else url
        raise click.UsageError(set_off(f"--otlp {shown} is no address; give one such as http://localhost:4318"))
    return urlunsplit(parts._replace(path="/v1/traces")) if parts.path in ("", "/") else url


def _refuse_redirection(response: Any, **_: Any) -> None:
    if 300 <= response.status_code < 400:
        raise ConnectionError(f"it answers with a redirection ({response.status_code}), which is not followed")


async def _import(file: IO[bytes], named: str | None) -> int:
    async with journal_at(named) as journal:
        run_ids = await import_runs(journal, file)
    note(f"{len(run_ids)} run{'' if len(run_ids) == 1 else 's'} imported into {without_password(journal_named(named))}")
    return ExitCode.FINISHED
