"""Waves: which calls of a reply run together, and which of them one after the other."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from treadle.drivers.calls.admission import hands_on
from treadle.drivers.calls.made import calls_so_far
from treadle.drivers.run import Run
from treadle.kernel.calls import CallRecord
from treadle.tools import Tool


def takes_turns(tool: Tool | None) -> bool:
    """Whether calls of `tool` wait: for the writes before them, or for a resource that they share."""
    return tool is not None and ((tool.effect == "write" and not tool.parallel) or tool.resource is not None)


def lanes(records: Sequence[CallRecord], tool_of: Callable[[CallRecord], Tool | None]) -> Iterator[list[CallRecord]]:
    """What goes one after the other: all that write, and of the others those of one resource, each with what becomes of
    its result.
    """
    writes: list[CallRecord] = []
    sharing: dict[str | None, list[CallRecord]] = {}
    for record in records:
        tool = tool_of(record)
        if tool is not None and tool.effect == "write" and not tool.parallel:
            writes.append(record)
        else:
            sharing.setdefault(None if tool is None else tool.resource, []).append(record)
    yield from sharing.values()
    if writes:
        yield writes


def waves(run: Run, records: Sequence[CallRecord]) -> list[list[CallRecord]]:
    """Which calls run together, in call order: a tool that is `alone` has a wave of its own.

    What hands the conversation on comes last, wherever it was called: what was called beside it stands in what is
    handed on, with its results, so that nobody does it again.
    """
    tools, out, after_alone = run.config.tools, list[list[CallRecord]](), True
    for record in sorted(records, key=partial(hands_on, run)):
        tool = tools.get(record.doing.name)
        alone = tool is not None and tool.alone
        if alone or after_alone:
            out.append([record])
        else:
            out[-1].append(record)
        after_alone = alone
    return out


def let_in_before(run: Run, record: CallRecord) -> list[CallRecord]:
    """The calls that were let in before `record` is, and begin with it: none does before all are let in that run
    together.
    """
    tools = run.config.tools
    if takes_turns(tools.get(record.doing.name)):
        return []
    still_open = [one for one in calls_so_far(run) if one.id == record.id or _is_let_in(one)]
    wave = next(wave for wave in waves(run, still_open) if record.id in [one.id for one in wave])
    before = wave[: [one.id for one in wave].index(record.id)]
    return [one for one in before if not takes_turns(tools.get(one.doing.name))]


def _is_let_in(record: CallRecord) -> bool:
    return record.status in ("asked", "approved") and not record.executed
