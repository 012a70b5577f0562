"""Observed: the latest calls of a run as the watch for progress sees them."""

from treadle.judging.progress import WINDOW, ObservedCall
from treadle.kernel.messages import Text, ToolMessage
from treadle.kernel.state import RunState


def observed(state: RunState, window: int = WINDOW) -> list[ObservedCall]:
    """The calls with their results of the last `window` steps that made any, oldest first."""
    polling, writes = state.started.polling, state.started.writes
    calls: list[ObservedCall] = []
    left = window
    for number in range(len(state.steps) - 1, -1, -1):
        records = state.steps[number].calls
        if not records:
            continue
        for record in reversed(records):
            if record.result is not None:
                name = record.name
                calls.append(
                    ObservedCall(
                        name,
                        record.arguments_json,
                        shown(record.result),
                        record.result.is_error,
                        name in polling,
                        name in writes,
                        number,
                    )
                )
        left -= 1
        if not left:
            break
    return calls[::-1]


def shown(result: ToolMessage) -> str:
    """A result as text, with a digest of what is no text: two pictures are not the same for having no words."""
    if isinstance(result.content, str):
        return result.content
    return "\n".join(part.text if isinstance(part, Text) else f"[{hash(part)}]" for part in result.content)
