"""Fronts: the routes of the protocols that front ends speak. Each reads a post, asks `Runs`, and writes its parts.

A post goes on with what the server knows of the chat or thread, its own user's; the history that comes with it is the
browser's copy. What is decided twice is told twice and done once.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from treadle.journal.info import RunInfo
from treadle.journal.redaction import as_kept
from treadle.kernel.messages import Json
from treadle.result import Pending
from treadle.serve.chats import messages
from treadle.serve.deciding import Decides, decided, say
from treadle.serve.forms import encoded
from treadle.serve.points import Answers, Point, answered, last_said, said_last
from treadle.serve.posting import Posting
from treadle.serve.protocols import ag_ui, ag_ui_post, ai_sdk
from treadle.serve.protocols.moves import Move
from treadle.serve.protocols.wire import approval_id, bad, name_of
from treadle.serve.refusals import refusing
from treadle.serve.refused import TROUBLE, Refused, refused_by
from treadle.serve.serving import Serving, Slot, json_response, naming
from treadle.serve.telling import Telling
from treadle.serve.turns import Place, answer_of
from treadle.serve.user import User

Write = Callable[[Move], Iterator[Json]]


class Asked(Struct, forbid_unknown_fields=True):
    """What may stand in the query of a post."""

    on_disconnect: Literal["go_on", "cancel"] = "go_on"


class AskedOfAiSdk(Asked):
    """Likewise of a post of the AI SDK: the newest version whose parts it reads."""

    sdk: int = 6


class AskedOfMessages(Struct, forbid_unknown_fields=True):
    """What may stand in the query where the messages of a chat are asked for."""

    sdk: int = 6


def routes(serving: Serving) -> list[BaseRoute]:
    """The routes of both protocols."""
    fronts = Fronts(serving)
    return [
        Route("/ai-sdk/{agent}", refusing(fronts.post_ai_sdk), methods=["POST"]),
        Route("/ai-sdk/{agent}/{chat:path}/stream", refusing(fronts.again_ai_sdk), methods=["GET"]),
        Route("/ai-sdk/{agent}/{chat:path}/messages", refusing(fronts.messages_ai_sdk), methods=["GET"]),
        Route("/ag-ui/{agent}", refusing(fronts.post_ag_ui), methods=["POST"]),
    ]


class Fronts:
    """What the routes do."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._runs = serving.runs
        self._answers = Answers()

    async def post_ai_sdk(self, request: Request) -> Response:
        """A post of `useChat`."""
        serving, user, agent = self._serving, self._serving.user(request), request.path_params["agent"]
        asked = self._asked(request)
        self._runs.agent(user, agent)
        post = ai_sdk.posted(await serving.body(request, dict[str, Any]))
        posting = self._ai_sdk_posting(user, agent, post)
        begin = partial(self._ai_sdk_point, user, agent, post, posting)
        with serving.slot(request) as slot:
            point = await (begin() if posting is None else self._answers.once((user.name, *posting), begin))
            shown = "" if post.message is not None else post.after
            return await self._ai_sdk_stream(request, user, point, asked, shown, slot)

    def _ai_sdk_posting(self, user: User, agent: str, post: ai_sdk.Posted) -> Posting | None:
        """What names a message of a browser's; None for an answer that is asked for anew, each time another one."""
        return None if post.message is None or post.anew or not post.name else self._message(user, agent, post)

    def _message(self, user: User, agent: str, post: ai_sdk.Posted) -> Posting:
        names = ("ai-sdk", agent, post.chat, post.name, post.after)
        named = self._serving.posting(user, names, post.message)
        # Applications may count ids from the beginning whenever their page is loaded: then it is another message.
        return self._serving.posting(user, (*names, named.digest), post.message)._replace(message=named.run_id or "")

    async def _ai_sdk_point(self, user: User, agent: str, post: ai_sdk.Posted, posting: Posting | None) -> Point:
        # First: what another server does with the same meanwhile is seen by the look that follows.
        last = await self._runs.conversations.newest(user, post.chat)
        before = None if posting is None else await self._before(user, post.chat, posting)
        if before is not None:
            return before
        if post.message is None:
            if last is None:
                raise _nothing_new()
            return await decided(self._runs, user, last.run_id, _decides_of(post, last.run_id))
        if post.anew or last is None or not is_open(last):
            after = Place(post.after, self._message(user, agent, post).message) if post.anew else None
            run_id = await self._runs.start(
                user, agent, post.message, conversation=post.chat, after=after, posting=posting
            )
            return Point(run_id)
        return await say(self._runs, user, last.run_id, post.message, posting, _decides_of(post, last.run_id))

    async def again_ai_sdk(self, request: Request) -> Response:
        """The stream of the answer that is under way in a chat, from its beginning; 204 if none is."""
        user, agent = self._serving.user(request), request.path_params["agent"]
        asked = self._asked(request)
        self._runs.agent(user, agent)
        last = await self._runs.conversations.newest(user, request.path_params["chat"])
        if last is None or not (await self._runs.views.describe(user, last.run_id)).driven:
            return Response(status_code=204)
        return await self._ai_sdk_stream(request, user, await last_said(self._runs, user, last.run_id), asked)

    async def messages_ai_sdk(self, request: Request) -> Response:
        """The messages of a chat, for a browser that opens it again; none of one that is new."""
        user, asked = self._serving.user(request), self._serving.query(request, AskedOfMessages)
        self._runs.agent(user, request.path_params["agent"])
        return json_response(await messages(self._runs, user, request.path_params["chat"], _version(asked.sdk)))

    async def _ai_sdk_stream(
        self,
        request: Request,
        user: User,
        point: Point,
        asked: AskedOfAiSdk,
        shown: str = "",
        slot: Slot | None = None,
    ) -> Response:
        # What answers a message to a run that had waited is another message than what it said before; what was decided
        # goes on with the one that the browser shows.
        run_id, number = answer_of(shown)
        # Where somebody else spoke to the run meanwhile, what is told is the answer to that, too.
        numbers = [(await last_said(self._runs, user, point.run_id)).number, number if run_id == point.run_id else 0]
        number = max(*numbers, point.number if point.said is not None else 0)
        message_id = f"{point.run_id}:{number}" if number else point.run_id
        known = [name_of(one) for one in point.pending]
        typed = self._runs.is_typed(request.path_params["agent"])
        writer = ai_sdk.Writer(point.run_id, message_id, known, asked.sdk, typed)
        chunks = self._chunks(Telling(self._runs, user, point), writer.write, ai_sdk.trouble, ai_sdk.END)
        return self._stream(request, user, point, chunks, asked, dict(ai_sdk.HEADERS), slot)

    async def post_ag_ui(self, request: Request) -> Response:
        """A post of an AG-UI client."""
        serving, user, agent = self._serving, self._serving.user(request), request.path_params["agent"]
        asked = self._serving.query(request, Asked)
        serving.leaves(user, asked.on_disconnect)
        self._runs.agent(user, agent)
        post = ag_ui_post.posted(await serving.body(request, dict[str, Any]))
        said = [post.message, post.verdicts, post.results if post.message is None else {}]
        posting = serving.posting(user, ("ag-ui", agent, post.thread, post.run), said)
        begin = partial(self._ag_ui_point, user, agent, post, posting)
        with serving.slot(request) as slot:
            point = await self._answers.once((user.name, *posting), begin)
            telling = Telling(self._runs, user, point)
            writer = ag_ui.Writer(point.run_id, post, point.pending, self._runs.is_typed(agent), telling.told)
            chunks = self._chunks(telling, writer.write, ag_ui.trouble)
            return self._stream(request, user, point, chunks, asked, {}, slot)

    async def _ag_ui_point(self, user: User, agent: str, post: ag_ui_post.Posted, posting: Posting) -> Point:
        # First: what another server does with the same meanwhile is seen by the look that follows.
        last = await self._runs.conversations.newest(user, post.thread)
        says = post.message is not None and not post.verdicts
        before = await self._before(user, post.thread, posting) if says else None
        if before is not None:
            return before
        kept = None if post.message is None else as_kept(post.message, getattr(self._runs.journal, "redact", None))
        waits = last is not None and is_open(last)
        if post.message is None or post.verdicts:
            try:
                if last is None:
                    raise _nothing_new()
                return await decided(self._runs, user, last.run_id, _decides_of_ag_ui(post, last.run_id))
            except Refused:
                # A client that comes back may say nothing but which run it was.
                if post.verdicts:
                    raise
                before = await self._before(user, post.thread, posting._replace(digest=""))
                if before is None:
                    raise
                return before
        if last is not None and waits:
            if last.run_id in self._runs.live.driven and await said_last(self._runs, user, last.run_id) == kept:
                # It comes again from a client that was cut off; the run that is under way answers it.
                return await last_said(self._runs, user, last.run_id)
            return await say(self._runs, user, last.run_id, post.message, posting, _decides_of_ag_ui(post, last.run_id))
        run_id = await self._runs.start(
            user, agent, post.message, conversation=post.thread, tools=post.tools, posting=posting
        )
        return Point(run_id)

    # What both need.

    def _asked(self, request: Request) -> AskedOfAiSdk:
        asked = self._serving.query(request, AskedOfAiSdk)
        self._serving.leaves(self._serving.user(request), asked.on_disconnect)
        _version(asked.sdk)
        return asked

    async def _before(self, user: User, conversation: str, posting: Posting) -> Point | None:
        """From where is told what answers a request that came before; None if it did not."""
        return await answered(self._runs, user, posting, await self._runs.conversations.lately(user, conversation))

    async def _chunks(
        self,
        telling: Telling,
        write: Write,
        trouble: Callable[[Refused], Json],
        end: str = "",
    ) -> AsyncGenerator[bytes]:
        try:
            await telling.begin()
            async with aclosing(telling.moves()) as moves:
                async for move in moves:
                    for part in write(move):
                        yield data(part)
        except TROUBLE as error:
            yield data(trouble(refused_by(error)))
        if end:
            yield f"data: {end}\n\n".encode()

    def _stream(
        self,
        request: Request,
        user: User,
        point: Point,
        chunks: AsyncGenerator[bytes],
        asked: Asked,
        headers: dict[str, str],
        slot: Slot | None,
    ) -> Response:
        left = partial(self._runs.cancel, user, point.run_id) if asked.on_disconnect == "cancel" else None
        headers |= naming(point.run_id)
        return self._serving.stream(request, chunks, headers=headers, left=left, slot=slot)


def _version(sdk: int) -> int:
    if sdk not in ai_sdk.VERSIONS:
        raise bad("sdk in the query", f"is the AI SDK's version: {' or '.join(map(str, ai_sdk.VERSIONS))}")
    return sdk


def is_open(line: RunInfo) -> bool:
    """Whether a run is under way, or waits: then what is said is said to it."""
    return line.status in ("running", "waiting")


def data(part: Json) -> bytes:
    """One server-sent event without a name."""
    return b"data: %b\n\n" % encoded(part)


def _nothing_new() -> Refused:
    return bad("the request", "says nothing new, and there is no run that waits")


def _decides_of(post: ai_sdk.Posted, run_id: str) -> Decides:
    def names(one: Pending) -> set[str]:
        results = {name_of(one)} & post.results.keys() if one.kind == "result" else set[str]()
        return {approval_id(run_id, one)} & post.verdicts.keys() | results

    # Of other runs verdicts, and of this one results, are history.
    whole = {name for name in post.verdicts if name.startswith(f"{run_id}:")}
    return Decides(partial(ai_sdk.decisions, post), names, whole, shows=True)


def _decides_of_ag_ui(post: ag_ui_post.Posted, run_id: str) -> Decides:
    return Decides(partial(ag_ui_post.decisions, post), partial(ag_ui_post.answers, post, run_id), post.verdicts.keys())
