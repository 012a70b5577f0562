"""Running: a call that somebody else asked for, as a run here; and what the run waits for, asked at the other end."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import anyio

from treadle.agent import Agent
from treadle.drivers.answers import Answers
from treadle.drivers.calls.unfinished import told_in_words
from treadle.drivers.drive import driven
from treadle.drivers.taking_up import GoingOn, taken_up
from treadle.journal import JournalConflict
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Content, File, Image, Text, ToolMessage
from treadle.mcp.failing import told_of as wrong_with
from treadle.mcp.forms import NO_ANSWER, answer_in, form_for
from treadle.mcp.keyed import in_words_of, key_in, known, run_once
from treadle.mcp.progress import News, Watch, tell
from treadle.mcp.relay import asked
from treadle.mcp.typed import Form, Typed, content_of, form_of_results
from treadle.result import Pending, RunResult, answer_shown, told_of
from treadle.tools.raised import log_raised
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    import mcp_types
    from mcp.server.context import ServerRequestContext

_log = logging.getLogger("treadle")

RUN: Final = "io.treadle/run"
"""Under which name a result's `_meta` has the run that it is of."""

MOST_WAITING: Final = 1000
"""Runs that wait for an answer of the person at the other end; the oldest is forgotten first, and stays paused."""


class Calls:
    """Carries calls out.

    Args:
        agent: whose runs they are.
        names: what may be called.
        is_agent: whether a call is a task for the agent, and not a call of one of its tools.

    Attributes:
        typed: what is given of the agent's answers as structured content.
        forms: those of what its tools give, by their names, where they are known.
    """

    def __init__(self, agent: Agent[Any, Any], names: Collection[str], *, is_agent: bool) -> None:
        self._agent, self._names, self._is_agent = agent, names, is_agent
        self.typed = Typed(agent)
        found = {name: form_of_results(tool) for name, tool in agent.tools.items() if not is_agent}
        self.forms: Mapping[str, Form] = {name: form for name, form in found.items() if form is not None}
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._under_way = set[asyncio.Task[Any]]()

    def end(self) -> None:
        """Cancels the calls under way; once more, if they do something to clean up."""
        for task in self._under_way:
            task.cancel()

    async def call(
        self, context: "ServerRequestContext[Any, Any]", params: "mcp_types.CallToolRequestParams"
    ) -> "mcp_types.CallToolResult | mcp_types.InputRequiredResult":
        """One call, or its continuation where the client brings what was asked for.

        Raises:
            MCPError: there is no such tool, or the client would have to ask its person and cannot.
        """
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        if params.name not in self._names:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r:.100}")
        news, heard = anyio.create_memory_object_stream[News](100)
        found: Any = None
        async with anyio.create_task_group() as group:
            group.start_soon(tell, context, heard)
            with news, self._counted():
                found = await self._carried(context, params, Watch(news, is_agent=self._is_agent))
        if isinstance(found, MCPError):
            # Raised in the group it would be wrapped.
            raise found
        answered: mcp_types.CallToolResult | mcp_types.InputRequiredResult = found
        return answered

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if (task := asyncio.current_task()) is not None:
            self._under_way.add(task)
        try:
            yield
        finally:
            self._under_way -= {task}

    async def _carried(self, context: Any, params: Any, watch: Watch) -> Any:
        from mcp import MCPError

        try:
            result = await self._begun(params, watch)
            asks = _can_ask(context) and not _is_left_open((params.input_responses or {}).values())
            while result.stop.reason == "waiting" and result.pending and asks:
                if _is_stateless(context):
                    return self._asks(params, result)
                try:
                    found = {one.call_id: await _elicited(context, one) for one in _askable(result.pending)}
                except (MCPError, ValueError) as error:
                    # An answer that is none says neither yes nor no.
                    _log.warning(
                        "run %s waits: the client was to ask its person, and answers: %.500s",
                        result.run_id,
                        wrong_with(error),
                        extra={"run_id": result.run_id, "agent": self._agent.name},
                    )
                    break
                if not found or _is_left_open(found.values()):
                    break
                answers = {call_id: _answer(one) for call_id, one in found.items()}
                result = await self._gone_on(result, self._said(params), answers, watch)
        except (Misuse, ServerFailed) as error:
            return _failed(str(error))
        except Exception as error:
            what = f"a call of {params.name} that was asked for over MCP failed"
            log_raised(what, error, getattr(self._agent.journal, "redact", None), level=logging.ERROR)
            return _failed("the call failed; the server's log says why. What it may have done by then is not undone")
        waits = result.stop.reason == "waiting" and _askable(result.pending)
        if waits and _is_stateless(context) and not _can_ask(context):
            return _cannot_ask(self._with_changes(_waits(result), result), result)
        return self._told(result)

    async def _begun(self, params: Any, watch: Watch) -> RunResult[Any]:
        """The run of a new call; or, gone on with, that which waited for what the client brings."""
        if params.request_state is not None:
            return await self._continued(params, watch)
        said, key = self._said(params), key_in(params.meta)
        return await run_once(self._agent, said, key, watch, one_call=not self._is_agent)

    def _said(self, params: Any) -> str:
        """What the run of a call is asked."""
        given = params.arguments or {}
        if not self._is_agent:
            return asked(params.name, given)
        task = given.get("task")
        if not isinstance(task, str) or not task.strip():
            raise Misuse('the arguments are {"task": "…"}, the whole task in words')
        return task

    async def _continued(self, params: Any, watch: Watch) -> RunResult[Any]:
        """The run that waited for what the client brings, which is done once, however often it is brought."""
        waiting, key = self._waiting.get(params.request_state), key_in(params.meta)
        given = params.input_responses or {}
        is_open, answers = _is_left_open(given.values()), {name: _answer(one) for name, one in given.items()}
        if waiting is None and key is not None and self._agent.journal is not None:
            # It was asked by an earlier process of this server: the run is found by its key, and what came of it since.
            found = await run_once(self._agent, self._said(params), key, watch, one_call=not self._is_agent)
            wanted = {one.call_id for one in _askable(found.pending)}
            gone_on = wanted and wanted == set(answers) and not is_open
            return await self._gone_on(found, self._said(params), answers, watch) if gone_on else found
        if waiting is None:
            raise Misuse(
                "nothing is known of what this goes on with, and nothing was done now: it may have been done before, "
                "if this server was started anew meanwhile. See to that before you call the tool anew"
            )
        if waiting.said != self._said(params):
            raise Misuse("this goes on with another call, or with other arguments than it waits with: nothing was done")
        run_id = waiting.result.run_id
        if waiting.answered and self._agent.journal is None:
            raise Misuse(f"this was answered already, and run {run_id} went on by it; it is not done a second time")
        if waiting.answered or (is_open and self._agent.journal is not None):
            return await known(self._agent, run_id, watch)
        if is_open:
            return waiting.result
        waiting.answered = True
        return await self._gone_on(waiting.result, waiting.said, answers, watch)

    async def _gone_on(
        self, paused: RunResult[Any], words: str, answers: Mapping[str, Mapping[str, Any] | None], watch: Watch
    ) -> RunResult[Any]:
        """The run with what the person said; a call about which nothing was said is refused.

        A call of a tool is made with the `words` of the client, which has it whole, whatever the journal kept of it.
        """
        approve: list[str | Pending] = []
        deny: dict[str, str] = {}
        results: dict[str, Any] = {}
        for one in _askable(paused.pending):
            said = answers.get(one.call_id)
            if one.kind == "approval" and said is not None and said.get("allow") is True:
                approve.append(one if self._is_agent else one.call_id)
            elif one.kind == "result" and said is not None:
                results[one.call_id] = answer_in(said)
            elif one.kind == "result":
                results[one.call_id] = NO_ANSWER
            else:
                deny[one.call_id] = "the person at the other end did not allow it"
        run = paused if self._agent.journal is None else paused.run_id
        try:
            as_said = tuple if self._is_agent else in_words_of(words)
            going_on = GoingOn(Answers.of(approve, deny, results), on_event=watch, as_said=as_said)
            begun = await taken_up(self._agent._config, run, going_on)
            return await driven(begun.run, begun.earlier) if begun.to_do else begun.result
        except (Misuse, JournalConflict):
            if self._agent.journal is None:
                raise
            # Somebody else may have decided meanwhile, and the call may be made by now: what came of it is told.
            found = await known(self._agent, paused.run_id, watch)
            if {one.call_id for one in found.pending} & {one.call_id for one in paused.pending}:
                raise
            return found

    def _asks(self, params: Any, result: RunResult[Any]) -> Any:
        """What the client is to bring, in the era in which it is not asked during the call."""
        import mcp_types

        requests = {one.call_id: _question(one) for one in _askable(result.pending)}
        if not requests:
            return self._told(result)
        state = secrets.token_urlsafe(24)
        self._waiting[state] = _Waiting(self._said(params), result)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        return mcp_types.InputRequiredResult(input_requests=requests, request_state=state)

    def _told(self, result: RunResult[Any]) -> Any:
        """What the client is told of a run that goes no further for now."""
        import mcp_types

        meta, record = {RUN: result.run_id}, None
        if not self._is_agent and result.steps:
            record = next(iter(result.steps[-1].calls), None)
        if result.stop.reason == "waiting":
            return _failed(self._with_changes(_waits(result), result), meta)
        if record is not None and record.result is not None:
            return self._given(record.doing.name, record.result, meta)
        if not result.finished:
            why = f"The agent stopped before it was done ({told_of(result.stop)})."
            return _failed(self._with_changes(f"{why} {result.text}".strip(), result), meta)
        try:
            data = self.typed.content(result)
        except ValueError as error:
            why = f"The agent ended ({result.stop.reason}) without an answer of the form that is listed: {error}."
            return _failed(self._with_changes(f"{why} {result.text}".strip(), result), meta)
        said, last = answer_shown(result), result.steps[-1].message if result.steps else None
        if not (said or result.output is not None or (last is not None and last.shown)):
            # What a condition ended on a call must not look as if nothing was done.
            said = self._with_changes(f"The agent ended without a word ({told_of(result.stop)}).", result)
        text = mcp_types.TextContent(type="text", text=said)
        return mcp_types.CallToolResult(content=[text], structured_content=data, _meta=meta)

    def _with_changes(self, words: str, result: RunResult[Any]) -> str:
        """What is told of an agent that has no answer, and what it has changed: whoever reads it may ask again."""
        records = (record for step in result.steps for record in step.calls)
        return told_in_words(words, records, self._agent.tools) if self._is_agent else words

    def _given(self, tool: str, result: ToolMessage, meta: Mapping[str, Any]) -> Any:
        """What a tool gave; as structured content too, where its form is listed."""
        import mcp_types

        parts: Sequence[Content] = (Text(result.content),) if isinstance(result.content, str) else result.content
        blocks, form, data = [_block(part) for part in parts], self.forms.get(tool), None
        is_error = result.is_error
        if form is not None and not is_error:
            try:
                data = content_of(form, result.content)
            except ValueError as error:
                # The call was made: whoever asked for it is to see what it gave.
                why = f"{tool} was called, and what it gave is not of the form that is listed: {error}."
                blocks, is_error = [mcp_types.TextContent(type="text", text=why), *blocks], True
        return mcp_types.CallToolResult(content=blocks, structured_content=data, is_error=is_error, _meta=dict(meta))


@dataclass
class _Waiting:
    """A run that waits for what the client brings: what it was asked, and whether the client has brought it."""

    said: str
    result: RunResult[Any]
    answered: bool = False


def _waits(result: RunResult[Any]) -> str:
    """What it waits for; of a call in doubt, that it may have been made, as whoever reads it may ask for it anew."""
    asked = _askable(result.pending)
    in_doubt = ", ".join(f"{one.tool} ({one.call_id})" for one in result.pending if one not in asked)
    parts = []
    if asked:
        calls = "; ".join(f"{one.tool} ({one.call_id}) waits for {one.kind}" for one in asked)
        parts.append(f"Run {result.run_id} waits for a person, who has not answered: {calls}.")
    if in_doubt:
        parts.append(
            f"Run {result.run_id} was cut off in {in_doubt}: nobody knows whether that took effect, and to call it "
            "anew may do it twice. Whoever runs this server is to say what came of it."
        )
    return " ".join(parts) or f"Run {result.run_id} is paused, and goes on when whoever runs this server resumes it."


def _cannot_ask(words: str, result: RunResult[Any]) -> Exception:
    """What the newest era has for a client that does not say that it can ask its person."""
    from mcp import MCPError
    from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

    data = {"requiredCapabilities": {"elicitation": {"form": {}}}, RUN: result.run_id}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, words, data)


def _can_ask(context: Any) -> bool:
    """Whether the client says that it can ask its person to fill in a form."""
    said = context.session.client_capabilities
    asks = None if said is None else said.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


def _is_stateless(context: Any) -> bool:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _askable(pending: Sequence[Pending]) -> Sequence[Pending]:
    """What the person at the other end may decide: not what a crash left in doubt, which is for whoever runs this."""
    return [one for one in pending if one.kind != "interrupted"]


def _question(one: Pending) -> Any:
    import mcp_types

    words, schema = form_for(one)
    return mcp_types.ElicitRequest(params=mcp_types.ElicitRequestFormParams(message=words, requested_schema=schema))


async def _elicited(context: Any, one: Pending) -> Any:
    words, schema = form_for(one)
    return await context.session.elicit_form(words, schema, related_request_id=context.request_id)


def _is_left_open(found: Iterable[Any]) -> bool:
    """Whether somebody has said neither yes nor no. A call that comes again under its key is asked about again."""
    return any(getattr(one, "action", "") == "cancel" for one in found)


def _answer(found: Any) -> Mapping[str, Any] | None:
    """What the person said; None if nothing, or no."""
    return found.content if getattr(found, "action", "") == "accept" else None


def _failed(words: str, meta: Mapping[str, Any] | None = None) -> Any:
    import mcp_types

    text = mcp_types.TextContent(type="text", text=words)
    return mcp_types.CallToolResult(content=[text], is_error=True, _meta=None if meta is None else dict(meta))


def _block(part: Content) -> Any:
    import base64

    import mcp_types

    match part:
        case Text(text=text):
            return mcp_types.TextContent(type="text", text=text)
        case Image(data=data, media_type=kind) if data is not None:
            return mcp_types.ImageContent(type="image", data=base64.b64encode(data).decode(), mime_type=kind)
        case File(data=data, media_type=kind) if data is not None and kind.startswith("audio/"):
            return mcp_types.AudioContent(type="audio", data=base64.b64encode(data).decode(), mime_type=kind)
        case File(data=data, media_type=kind, name=name) if data is not None:
            blob = mcp_types.BlobResourceContents(
                uri=f"file:///{quote(name, '')}", mime_type=kind, blob=base64.b64encode(data).decode()
            )
            return mcp_types.EmbeddedResource(type="resource", resource=blob)
        case Image(url=url) | File(url=url):
            name = getattr(part, "name", "image")
            return mcp_types.ResourceLink(type="resource_link", uri=url or "", name=name)
