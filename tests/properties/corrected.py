"""What a person put in place of a model's arguments: what the model must have been told of it, and what it must not.

Nothing here is folded: it is read from the replies and decisions in the journal, and held against every request, as the
run made it and as it went over the wire in the model's dialect.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from journals import masked
from trial import Trial

from treadle.kernel.events import ApprovalDecided, Event, ModelReplied, ToolReacted
from treadle.kernel.messages import Message, Text, ToolCall, ToolMessage, UserMessage

WORDS = "A person put these arguments in place of yours: "
NO_RESULT = '{"error":true,"message":"No result was recorded'
BEGINNING = 200 - 64
"""Characters of the arguments that stay where a result is cleared, at least: no figure among them is cut in two."""


def put_by_people(events: Sequence[Event], *, hides: bool = False) -> dict[str, str | None]:
    """By call, the arguments that a person put in place of those that the model wrote; None where nobody did.

    Whoever takes up a run whose journal `hides` figures holds against each other what stands there.
    """
    kept = masked if hides else str
    written, own, replaced = dict[str, str](), dict[str, tuple[str, str]](), set[str]()
    put: dict[str, str | None] = {}
    for event in events:
        match event:
            case ModelReplied(message=message):
                written |= {call.id: call.arguments for call in message.calls}
                own |= {call.id: (call.name, call.arguments) for call in message.calls}
                put |= {call.id: None for call in message.calls}
                replaced -= put.keys() & {call.id for call in message.calls}
            case ToolReacted(action="change", call_id=call_id, arguments=str(arguments)):
                own[call_id] = own[call_id][0], arguments
            case ToolReacted(
                action="call", call_id=call_id, call=ToolCall(name=name, arguments=arguments), other=other
            ):
                # The same call again is the model's own still, as it is made by now.
                before = own.get(call_id, ("", ""))
                again = name == before[0] and (_same(arguments, before[1]) or _same(arguments, kept(before[1])))
                # Whoever reads the model's call with its figures hidden knows of none that is the same.
                again = again and not (hides and other)
                replaced = replaced - {call_id} if again else replaced | {call_id}
            case ApprovalDecided(approved=True, answer=None, arguments=str(arguments), call_id=call_id):
                # What the application has called in place of the model's call was never the model's.
                if call_id not in replaced:
                    own[call_id] = own[call_id][0], arguments
                    put[call_id] = None if _same(arguments, kept(written.get(call_id, ""))) else arguments
    return put


def _same(one: str, other: str) -> bool:
    try:
        found: bool = json.loads(one or "{}") == json.loads(other or "{}")
    except ValueError:
        found = one == other
    return found


def what_a_person_put_in_place_is_told(trial: Trial) -> Iterator[str]:
    """Each request, and the result, tells of just those calls that a person had made with other arguments."""
    hides = trial.world.quotes
    known = {run: put_by_people(trial.journal.said[run], hides=hides) for run in trial.journal.ever}
    # A run of another place may go on with a conversation from any moment of it: its notices are of what was put there.
    every = {call_id: put for one in known.values() for call_id, put in one.items()}
    for _, _, player in trial.world.players:
        for request, sent in zip(player.requests, player.sent, strict=True):
            if request.run_id in known:
                where = f"step {request.step} of {trial.path(request.run_id)}"
                yield from (f"{what}, in {where}" for what in _untold(sent, known[request.run_id]))
            else:
                yield from (f"{what}, in a run" for what in _untrue_notices(sent, every))
        for request, texts in player.wires:
            yield from (f"{what}, in step {request.step}" for what in _lost_on_the_way(request.messages, texts))
    result = trial.last.result
    if result is not None:
        yield from (f"{what}, in the result" for what in _untold(result.messages, known.get(result.run_id, {})))


def _untold(messages: Sequence[Message], put: dict[str, str | None]) -> Iterator[str]:
    for message in messages:
        # Where `prepare_step` has left a result out, that is said in its place.
        left_out = isinstance(message, ToolMessage) and message.text.startswith(NO_RESULT)
        if isinstance(message, ToolMessage) and message.call_id in put and not left_out:
            given = put[message.call_id]
            wanted = "" if given is None else f"{WORDS}{given}"
            text, wanted = masked(message.text), masked(wanted)
            beginning = wanted[: len(WORDS) + BEGINNING] if _cleared(message) else wanted
            if not text.startswith(beginning):
                yield f"the model is told {text[:100]!r}, where a person put {given}"
            elif not wanted and text.startswith(WORDS):
                yield f"the model is told {text[:100]!r}, where nobody put anything in place"
            elif wanted and message.whole is None and message.content[0] not in (Text(wanted), Text(f"{WORDS}{given}")):
                yield f"what a person put is one with the result: {message.content!r:.100}"
    yield from _untrue_notices(messages, put)


def _cleared(message: ToolMessage) -> bool:
    return message.whole is not None and '{"cleared":true' in message.text


def _untrue_notices(messages: Sequence[Message], put: dict[str, str | None]) -> Iterator[str]:
    """Where calls are named that were left out, those of a person are named with what that person put."""
    lines = [
        line
        for message in messages
        if isinstance(message, UserMessage) and message.left_out
        for line in message.text.splitlines()
    ]
    for line in lines:
        corrected = "a person put in place of yours" in line
        given = [text for text in put.values() if text is not None and masked(f"({text})") in masked(line)]
        if corrected and not given:
            yield f"{line!r} is said of a call, and no person put that"


def notices_name_what_was_made(trial: Trial) -> Iterator[str]:
    """No notice says of a call of the run that it was made with the arguments which a person had replaced."""
    for _, _, player in trial.world.players:
        for request, sent in zip(player.requests, player.sent, strict=True):
            events = trial.journal.said.get(request.run_id, ())
            put = put_by_people(events, hides=trial.world.quotes)
            replaced, kept = set[str](), set[str]()
            for call in [call for event in events if isinstance(event, ModelReplied) for call in event.message.calls]:
                line = f"- {' '.join(f'{call.name}({call.arguments})'.split())}"
                (kept if put.get(call.id) is None else replaced).add(line)
            for message in sent:
                if isinstance(message, UserMessage) and message.left_out:
                    said = {one.partition(", which was answered")[0] for one in message.text.splitlines()}
                    for line in sorted(said & (replaced - kept)):
                        yield f"{line!r} is told as made, and a person had put other arguments in place"


def _lost_on_the_way(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[str]:
    """What of it stood in a request, and not in what came over the wire."""
    said = Counter(
        message.text.partition("\n")[0]
        for message in messages
        if isinstance(message, ToolMessage) and message.text.startswith(WORDS)
    )
    for text, times in said.items():
        if sum(one.count(text) for one in texts) < times:
            yield f"{text!r} was to be told, and is not in the request as it was sent"
