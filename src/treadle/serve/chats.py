"""Chats: a conversation as the messages that `useChat` begins with, of the runs that it was said in.

Messages are called as those that were streamed, so that what a browser posts next names the answers that it has.
"""

from collections.abc import Sequence
from typing import Final

from treadle.drivers.conversing import BESIDE, said_before
from treadle.journal.info import RunInfo
from treadle.kernel.events import MessageAdded, RunPaused, RunStarted
from treadle.kernel.messages import Json, Message, UserMessage
from treadle.result import conversation_part
from treadle.serve.protocols import ai_sdk
from treadle.serve.protocols.ai_sdk_messages import Held
from treadle.serve.protocols.moves import Asked, Ended, Move, Said
from treadle.serve.protocols.wire import name_of
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.telling import Branch
from treadle.serve.turns import Turn, asked_in_pauses
from treadle.serve.user import User

MOST: Final = 100
"""Runs of a conversation that are told one by one, the newest; what was said before stands in the first of them."""


async def messages(runs: Runs, user: User, conversation: str, version: int = 6) -> list[Json]:
    """The messages of a conversation of the user's; none if there is none.

    An answer that is under way here is left out: its stream tells it from its beginning.

    Args:
        runs: all runs.
        user: whose it is.
        conversation: its name.
        version: the newest version of the AI SDK whose parts may be in them.
    """
    while True:
        last = await runs.conversations.newest(user, conversation)
        if last is None:
            return []
        lines = await runs.conversations.runs(user, conversation, MOST)
        try:
            return await _held(runs, user, conversation, version, last, lines)
        except Refused as error:
            if not await runs.conversations.lost(error, [last, *lines]):
                raise


async def _held(
    runs: Runs, user: User, conversation: str, version: int, last: RunInfo, lines: Sequence[RunInfo]
) -> list[Json]:
    """The messages of a conversation that has these runs, of which `last` is the newest."""
    await runs.live.settled(last.run_id)
    held, (chain, before) = Held(version), await _chain(runs, user, lines, last)
    held.earlier(before, f"{conversation}:before")
    for line, turn in chain:
        await _told(runs, user, line, held, turn)
    if (await runs.views.describe(user, last.run_id)).driven:
        held.without_last()
    return held.messages


async def _chain(
    runs: Runs, user: User, lines: Sequence[RunInfo], last: RunInfo
) -> tuple[Sequence[tuple[RunInfo, Turn | None]], Sequence[Message]]:
    """The runs that what `last` knows was said in, it the last of them, and what was said before the first of them.

    An answer that was asked for anew, or a message that was said in other words, is not followed by what it replaced:
    of a run that was spoken to, there may be what it had answered by then.
    """
    chain: list[tuple[RunInfo, Turn | None]] = [(last, None)]
    before = await _before(runs, user, last)
    ended = [one for one in lines if one.status == "finished" and one.stop != BESIDE and one.run_id != last.run_id]
    for line in ended:
        turns = await runs.conversations.turns(line) if before else ()
        for turn in reversed(turns):
            if turn.said == before:
                chain.append((line, turn))
                before = await _before(runs, user, line)
                break
    return chain[::-1], before


async def _before(runs: Runs, user: User, line: RunInfo) -> Sequence[Message]:
    """What was said before a run was asked what it answers."""
    (first, *_) = await runs.views.events(user, line.run_id, 0, 1)
    return said_before(first.event)


async def _told(runs: Runs, user: User, line: RunInfo, held: Held, until: Turn | None) -> None:
    """A run: what it was asked and says, and each message that was said to it while it waited, with its answer.

    After the answer that it is told `until` only what came of calls that were made before.
    """
    run_id = line.run_id
    branch = Branch(runs, user, run_id)
    writer = ai_sdk.Writer(run_id, run_id, version=7, typed=runs.is_typed(line.agent))
    events = await runs.views.events(user, run_id)
    asked_later = {at: paused for paused, at, _ in asked_in_pauses(one.event for one in events)}
    waiting: list[str] = []
    said = ""
    held.run_begins()
    for number, event in events:
        over = until is not None and until.end is not None and number >= until.end
        unsaid = until is not None and until.asked is not None and number >= until.asked
        if isinstance(event, RunStarted):
            asked = conversation_part(event.messages)[-1:]
            if asked and isinstance(asked[0], UserMessage):
                held.asked(f"{run_id}:asked", asked[0].content)
            held.answers(run_id)
        elif isinstance(event, MessageAdded) and number in asked_later and not over:
            said, name = event.message.text, f"{run_id}:{asked_later[number]}"
            held.asked(f"{name}:asked", event.message.content)
            held.answers(name)
            held.take({"type": "start", "messageMetadata": {"run": run_id, "agent": line.agent}})
        async for move in branch.hear(event):
            waiting = [name_of(one) for one in move.pending] if isinstance(move, Asked) else waiting
            if _is_told(move, said, number == len(events)) and not (unsaid and isinstance(move, Said)):
                for part in writer.write(move):
                    if not over or held.has_call_of(part):
                        held.take(part)
        waiting = waiting if isinstance(event, RunPaused) and not over else []
        said = ""
    held.settled(waiting)


def _is_told(move: Move, said: str, last: bool) -> bool:
    """Whether a move has a part: not what stands in a message of its own, nor a pause that is over."""
    return not ((isinstance(move, Said) and move.text == said) or (isinstance(move, Ended) and not last))
