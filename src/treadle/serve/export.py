"""Export: a run as something to keep: its story in parts, and as Markdown; `export_page` makes a page of it. Pure.

What a model or a tool wrote is text: it stands in fences longer than any in it, and what cannot be seen, or turns the
writing direction, as an escape.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from treadle.kernel.calls import CallRecord
from treadle.kernel.events import Event, MessageAdded, StepPrepared
from treadle.kernel.messages import UserMessage
from treadle.kernel.step import Step
from treadle.kernel.stop import counted
from treadle.serve.views import Described
from treadle.visible import visible

Format = Literal["jsonl", "markdown", "html"]

MEDIA = {"jsonl": "application/jsonl", "markdown": "text/markdown", "html": "text/html"}
ENDING = {"jsonl": "jsonl", "markdown": "md", "html": "html"}

Part = tuple[str, str, str]
"""What a part of a story is ("question", "text", "call", "result" or "end"), its heading, and what was said."""


def story(found: Described) -> Iterator[Part]:
    """What happened in a run, in its order, for a person."""
    first = next((one for one in reversed(found.state.started.messages) if isinstance(one, UserMessage)), None)
    if first is not None:
        yield "question", "Question", first.text
    step, added = found.state.step, _added(found.events)
    for one in (*found.state.steps, *(() if step is None else (step,))):
        yield from added.pop(one.number, ())
        yield from _step(one)
    for parts in added.values():
        yield from parts
    stop, made = found.result.stop, len(found.result.steps)
    cost = "" if found.result.cost is None else f", {found.result.cost:f} dollars"
    taken = f"{counted(made, 'step')}, {found.result.usage.total_tokens:,} tokens{cost}"
    yield "end", f"The end: {stop.reason}", " ".join(part for part in (stop.detail, f"({taken})") if part)


def _added(events: Iterable[Event]) -> dict[int, list[Part]]:
    """What was said to a run after its question, by the step that was the first to have it; -1 where none has."""
    added = dict[int, list[Part]]()
    for event in events:
        if isinstance(event, MessageAdded):
            added.setdefault(-1, []).append(("question", f"{event.by or 'Somebody'} adds", event.message.text))
        elif isinstance(event, StepPrepared) and -1 in added:
            added.setdefault(event.step, []).extend(added.pop(-1))
    return added


def _step(step: Step) -> Iterator[Part]:
    if step.text:
        yield "text", f"Step {step.number}: {step.model} says", step.text
    for record in step.calls:
        yield "call", f"Step {step.number}: calls {record.doing.name}", record.arguments_json
        yield "result", f"Result of {record.doing.name}", _result(record)


def _result(record: CallRecord) -> str:
    if record.result is None:
        return f"({record.status})"
    return record.result.text


def as_markdown(found: Described) -> str:
    """A run as Markdown."""
    lines = [f"# Run {found.line.run_id}", "", f"Agent {_inline(found.line.agent)}, model {_inline(found.line.model)}"]
    for _, heading, said in story(found):
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", said)), default=0))
        lines += ["", f"## {_inline(heading)}", "", f"{fence}text", seen(said), fence]
    return "\n".join([*lines, ""])


def _inline(text: str) -> str:
    """A name as it may stand in a line of Markdown: no sign in it means anything."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&-])", r"\\\1", " ".join(visible(text).split()))


def seen(text: str) -> str:
    """A text of several lines with escapes for what cannot be seen in it."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def file_name(found: Described, format: Format) -> str:
    """What the file is called."""
    return f"{re.sub(r'[^A-Za-z0-9._+-]', '_', found.line.run_id)[:150]}.{ENDING[format]}"
