"""AG-UI 1.0, the protocol of CopilotKit and other front ends, as a run is told in it: https://docs.ag-ui.com.

The formats are those of npm's `@ag-ui/core`, whose client checks that what is opened is closed and that no id is told
twice. Ids of calls and messages begin with the run's, as a model may count its calls anew in each run of a thread.
`ag_ui_post.py` reads what clients post.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from treadle.kernel.messages import Json
from treadle.kernel.names import escaped
from treadle.result import Pending, why_of
from treadle.serve.protocols import moves
from treadle.serve.protocols.ag_ui_again import Before
from treadle.serve.protocols.ag_ui_post import AGAIN, ANSWER, PROTOCOL, Posted, call_name
from treadle.serve.protocols.moves import Move, has_output
from treadle.serve.protocols.narrator import Told
from treadle.serve.protocols.wire import approval_id, failed, outcome, text_result, unfinished
from treadle.serve.refused import Refused


def trouble(error: Refused) -> Json:
    """What is told where a stream cannot go on."""
    return _event("RUN_ERROR", {}, message=f"{error.message}. {error.advice}".strip(), code=error.kind)


class Writer:
    """Writes moves as AG-UI events.

    Args:
        run_id: the run.
        posted: the post that this answers.
        pending: the calls that wait, of which the client was told, beside those in its thread.
        typed: whether the run's answer is typed.
        told: gives how much of the run, and of those below, was told before this answer.
    """

    def __init__(
        self,
        run_id: str,
        posted: Posted,
        pending: Iterable[Pending] = (),
        typed: bool = False,
        told: Callable[[], Iterable[tuple[str, str, Told]]] = tuple,
    ) -> None:
        self._run_id, self._posted, self._typed = run_id, posted, typed
        self._declared = {tool.name for tool in posted.tools}
        self._started = False
        names = {call_name(run_id, one): self._clients(one) for one in pending}
        self._told_before, self._pointed = told, frozenset(names)
        self._agents = frozenset([name for name, clients in names.items() if not clients])
        self._open: dict[tuple[str, str], Json] = {}
        self._has(posted.messages)
        self._told: dict[str, Json] = {}
        self._carrier: dict[str, str] = {}
        self._pending: tuple[Pending, ...] = ()

    def write(self, move: Move) -> Iterator[Json]:
        """The events that say `move`."""
        if isinstance(move, moves.Below):
            yield from self._below(move)
        else:
            yield from self._of(move, "", {}, self._run_id)

    def _of(self, move: Move, path: str, whose: Json, run_id: str) -> Iterator[Json]:
        match move:
            case moves.Began(agent=agent) if not path:
                yield from self._began(agent)
            case moves.StepBegan(step=step):
                yield self._opened("step", whose, f"step {step + 1}", "STEP_STARTED", "STEP_FINISHED", "stepName")
            case moves.StepEnded(step=step):
                yield from self._closed("step", whose, f"step {step + 1}")
                if not path:
                    yield from self._state("replace", "/steps", step + 1)
            case moves.PartBegan() | moves.PartPiece() | moves.PartEnded():
                yield from self._part(move, whose, f"{run_id}:{move.id}", path)
            case moves.CallBegan() | moves.CallPiece() | moves.CallReady() | moves.CallReturned() | moves.CallRefused():
                yield from self._call(move, path, whose)
            case moves.Withdrawn():
                yield from self._withdrawn(move, path, run_id)
            case moves.Progress(id=call_id, name=name, update=update):
                content = {"toolCallId": self._named(path, call_id), "toolName": name, "update": update}
                yield _event("ACTIVITY_SNAPSHOT", whose, messageId=f"{content['toolCallId']}:progress") | {
                    "activityType": "PROGRESS",
                    "content": content,
                    "replace": True,
                }
            case moves.Said(number=number, text=text):
                yield from self._said(f"{run_id}:said-{number}", text, whose)
            case moves.Ended() if not path:
                yield from self._ended(move)
            case moves.Asked(pending=pending) if not path:
                self._pending = tuple(pending)

    def _began(self, agent: str) -> Iterator[Json]:
        if self._started:
            return
        self._started = True
        yield _event("RUN_STARTED", {}, **self._names(), protocolVersion=PROTOCOL)
        if self._posted.state is not None:
            ours = {"run": self._run_id, "agent": agent, "status": "running", "steps": 0}
            yield _event("STATE_SNAPSHOT", {}, snapshot={**self._posted.state, "treadle": ours})
        before = Before(self._run_id, self._told_before()).thread(self._messages)
        kept = [one for one in before if one.get("role") != "tool" or one.get("toolCallId") not in self._agents]
        if kept != self._messages:
            # It was cut off, and comes back: what it has of this answer is told anew. What a client writes as the
            # result of the agent's own call, as CopilotKit does beside a `resume`, would stand in the place of it.
            self._has(kept)
            yield _event("MESSAGES_SNAPSHOT", {}, messages=copy.deepcopy(kept))

    def _has(self, messages: Sequence[Json]) -> None:
        """Takes note of the thread as the client has it."""
        calls = [call for one in messages for call in one.get("toolCalls") or () if isinstance(call, dict)]
        self._known = {*self._pointed, *(str(call.get("id")) for call in calls)}
        self._answered = {str(one.get("toolCallId")) for one in messages if one.get("role") == "tool"}
        # With what it is told; messages and calls by their ids.
        self._messages = list(messages)

    def _names(self) -> Json:
        return {"threadId": self._posted.thread, "runId": self._posted.run}

    def _state(self, op: str, path: str, value: Any) -> Iterator[Json]:
        if self._posted.state is not None:
            yield _event("STATE_DELTA", {}, delta=[{"op": op, "path": f"/treadle{path}", "value": value}])

    # What is opened is closed by the one that opened it, or at the end.

    def _opened(self, kind: str, whose: Json, name: str, opens: str, closes: str, field: str, **more: Any) -> Json:
        self._open[(kind + whose.get("subagentRunId", ""), name)] = _event(closes, whose, **{field: name})
        return _event(opens, whose, **{field: name}, **more)

    def _closed(self, kind: str, whose: Json, name: str) -> Iterator[Json]:
        closing = self._open.pop((kind + whose.get("subagentRunId", ""), name), None)
        if closing is not None:
            yield closing

    def _part(
        self, move: moves.PartBegan | moves.PartPiece | moves.PartEnded, whose: Json, name: str, path: str
    ) -> Iterator[Json]:
        thinking = move.kind == "thinking"
        if isinstance(move, moves.PartPiece):
            kind = "REASONING_MESSAGE_CONTENT" if thinking else "TEXT_MESSAGE_CONTENT"
            yield _event(kind, whose, messageId=name, delta=move.text)
            self._told[name]["content"] += move.text
        elif isinstance(move, moves.PartEnded):
            yield from self._closed(move.kind, whose, name)
            yield from self._closed("span", whose, name)
        elif thinking:
            yield self._opened("span", whose, name, "REASONING_START", "REASONING_END", "messageId")
            start = ("REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "messageId")
            yield self._opened(move.kind, whose, name, *start, role="reasoning")
            self._says({"id": name, "role": "reasoning", "content": "", **whose})
        else:
            start = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId")
            yield self._opened(move.kind, whose, name, *start, role="assistant")
            self._says({"id": name, "role": "assistant", "content": "", **whose})
            self._carrier[path] = name

    def _named(self, path: str, call_id: str) -> str:
        return f"{self._run_id}:{path}{escaped(call_id) if path else call_id}"

    def _call(
        self,
        move: moves.CallBegan | moves.CallPiece | moves.CallReady | moves.CallReturned | moves.CallRefused,
        path: str,
        whose: Json,
    ) -> Iterator[Json]:
        name = self._named(path, move.id)
        match move:
            case moves.CallBegan(name=tool):
                yield self._call_began(name, tool, path, whose)
            case moves.CallPiece(json=json):
                yield _event("TOOL_CALL_ARGS", whose, toolCallId=name, delta=json)
                self._told[name]["function"]["arguments"] += json
            case moves.CallReady():
                yield from self._closed("call", whose, name)
            case moves.CallRefused(returned=moves.CallReturned() as returned):
                yield from self._call(returned, path, whose)
            case moves.CallRefused(reason=reason):
                told = f"not approved: {reason}" if reason else "not approved"
                yield from self._result(name, move.name, move.arguments, told, path, whose)
            case moves.CallReturned(content=content):
                yield from self._result(name, move.name, move.arguments, text_result(content), path, whose)

    def _call_began(self, name: str, tool: str, path: str, whose: Json) -> Json:
        carrier = self._carrier.setdefault(path, f"{name}:calls")
        start = ("TOOL_CALL_START", "TOOL_CALL_END", "toolCallId")
        self._known.add(name)
        told = self._opened("call", whose, name, *start, toolCallName=tool, parentMessageId=carrier)
        self._told[name] = {"id": name, "type": "function", "function": {"name": tool, "arguments": ""}}
        if carrier not in self._told:
            self._says({"id": carrier, "role": "assistant", **whose})
        self._told[carrier].setdefault("toolCalls", []).append(self._told[name])
        return told

    def _says(self, message: Json) -> None:
        self._messages.append(message)
        self._told[message["id"]] = message

    def _result(self, name: str, tool: str, arguments: str, text: str, path: str, whose: Json) -> Iterator[Json]:
        """The result of a call. One that the client has not been told of is told first, if it is known."""
        if name not in self._known:
            if not tool:
                return
            yield self._call_began(name, tool, path, whose)
            if arguments:
                yield _event("TOOL_CALL_ARGS", whose, toolCallId=name, delta=arguments)
            yield from self._closed("call", whose, name)
        self._carrier.pop(path, None)
        if name in self._answered:
            # The client brought it.
            return
        told: Json = {"messageId": f"{name}:result", "toolCallId": name, "content": text, "role": "tool"}
        yield _event("TOOL_CALL_RESULT", whose, **told)
        self._says({"id": told["messageId"], "role": "tool", "content": text, "toolCallId": name, **whose})

    def _withdrawn(self, move: moves.Withdrawn, path: str, run_id: str) -> Iterator[Json]:
        """Takes what was shown back, by telling what the thread is without it."""
        calls = {self._named(path, call_id) for call_id, _ in move.calls}
        gone = {f"{run_id}:{part}" for part in move.parts}
        results = [*calls, *[self._named(path, call_id) for call_id in move.results]]
        gone |= {f"{name}:result" for name in results}
        yield from self._close_all([key for key in self._open if key[1] in calls])
        kept: list[Json] = []
        for message in self._messages:
            if message.get("id") in gone:
                continue
            if message.get("id") in self._told and "toolCalls" in message:
                message["toolCalls"] = [call for call in message["toolCalls"] if call["id"] not in calls]
                if not message["toolCalls"]:
                    del message["toolCalls"]
                    if "content" not in message:
                        continue
            kept.append(message)
        self._messages = kept
        self._carrier.pop(path, None)
        yield _event("MESSAGES_SNAPSHOT", {}, messages=copy.deepcopy(kept))

    def _said(self, name: str, text: str, whose: Json) -> Iterator[Json]:
        yield _event("TEXT_MESSAGE_START", whose, messageId=name, role="user")
        yield _event("TEXT_MESSAGE_CONTENT", whose, messageId=name, delta=text)
        yield _event("TEXT_MESSAGE_END", whose, messageId=name)
        self._says({"id": name, "role": "user", "content": text, **whose})

    # Runs below, and the end.

    def _below(self, below: moves.Below) -> Iterator[Json]:
        run_id, whose = below.run_id, {"subagentRunId": below.run_id}
        key = ("subagent", run_id)
        match below.move:
            case moves.Began():
                if key not in self._open and run_id not in self._known:
                    self._known.add(run_id)
                    self._open[key] = _event("SUBAGENT_ERROR", whose, message="It was cut off.")
                    started = _event("SUBAGENT_STARTED", whose, name=below.agent)
                    if below.parent:
                        started["parentSubagentRunId"] = below.parent
                    yield {**started, "parentToolCallId": f"{self._run_id}:{below.call_id}"}
            case moves.Ended(stop=stop, text=text):
                yield from self._close_all([one for one in self._open if one[0].endswith(run_id) and one != key])
                if self._open.pop(key, None) is None:
                    return
                if stop.reason == "waiting":
                    yield _event("SUBAGENT_FINISHED", whose, outcome={"type": "suspended"})
                elif stop.finished:
                    yield _event("SUBAGENT_FINISHED", whose, result=text)
                else:
                    # What a provider said stays in the journal.
                    told = stop.reason if outcome(stop) == "failed" else why_of(stop)
                    yield _event("SUBAGENT_ERROR", whose, message=f"It stopped: {told}.", code=stop.reason)
            case move if key in self._open:
                yield from self._of(move, below.path, whose, run_id)

    def _close_all(self, keys: Sequence[tuple[str, str]]) -> Iterator[Json]:
        for key in keys:
            yield self._open.pop(key)

    def _ended(self, move: moves.Ended) -> Iterator[Json]:
        yield from self._close_all(list(reversed(self._open)))
        usage, how = move.usage, outcome(move.stop, self._pending)
        yield from self._state("replace", "/status", move.stop.reason)
        counts = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
        tokens = [counts | {"totalTokens": usage.total_tokens, "reasoningTokens": usage.reasoning_tokens}]
        finished: Json = {**self._names(), "usage": tokens}
        match how:
            case "failed":
                code = move.failure[0] if move.failure else move.stop.reason
                yield _event("RUN_ERROR", {}, message=failed(move.failure), code=code, usage=tokens)
            case "limit" | "length" | "filtered" | "paused":
                code = "paused" if how == "paused" else move.stop.reason
                yield _event("RUN_ERROR", {}, message=unfinished(move.stop), code=code, usage=tokens)
            case "cancelled":
                yield _event("RUN_FINISHED", {}, **finished, outcome={"type": "cancelled"})
            case "waits":
                yield _event("RUN_FINISHED", {}, **finished, outcome=self._waiting())
            case _:
                result = move.output if has_output(move, self._typed) else move.text
                calls = [self._named("", call_id) for call_id, _, _ in move.unanswered]
                done: Json = {"type": "success", **({"pendingToolCallIds": calls} if calls else {})}
                yield _event("RUN_FINISHED", {}, **finished, result=result, outcome=done)

    def _waiting(self) -> Json:
        """How a run ends that waits: with interrupts for people, or with calls that the client carries out."""
        calls = [call_name(self._run_id, one) for one in self._pending if self._clients(one)]
        interrupts = [self._interrupt(one) for one in self._pending if not self._clients(one)]
        if interrupts:
            return {"type": "interrupt", "interrupts": interrupts}
        return {"type": "success", "pendingToolCallIds": calls}

    def _clients(self, one: Pending) -> bool:
        return one.kind == "result" and one.tool in self._declared and not one.run_id

    def _interrupt(self, one: Pending) -> Json:
        reason = {"approval": "approval", "interrupted": "interrupted", "result": "input_required"}[one.kind]
        told: Json = {"id": approval_id(self._run_id, one), "reason": reason, "message": one.question or str(one)}
        told |= {"toolCallId": call_name(self._run_id, one)}
        if one.kind != "result":
            told["responseSchema"] = AGAIN if one.kind == "interrupted" else ANSWER
        if one.run_id:
            told["subagentRunId"] = one.run_id
        call = {"tool": one.tool, "arguments": one.arguments_json, "found": one.found}
        return {**told, "metadata": {"call": call}}


def _event(kind: str, whose: Mapping[str, Any], **fields: Any) -> Json:
    return {"type": kind, **fields, **whose}
