"""Fronts of OpenAI's protocols: agents as models, for every client that can be given another base URL.

A client asks again by itself where an answer was lost, and says so in a header; such a request is answered by the run
that answers it already, and not by another one.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from treadle.agent import Agent
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.state import RunState
from treadle.result import Pending
from treadle.serve.deciding import Decides, decided, say
from treadle.serve.fronts import Asked
from treadle.serve.points import Answers, Point, said_before
from treadle.serve.posting import Posting, key_of
from treadle.serve.protocols import openai_caller as caller
from treadle.serve.protocols import openai_chat, openai_responses, openai_responses_post
from treadle.serve.protocols.openai_caller import Posted
from treadle.serve.protocols.wire import approval_id, bad, undecided
from treadle.serve.refusals import refusal, refusing
from treadle.serve.refused import TROUBLE, Refused, refused_by
from treadle.serve.serving import Serving, Slot, json_response, naming
from treadle.serve.telling import Telling
from treadle.serve.user import User
from treadle.serve.written_openai import Writer, chat_chunks, response_chunks, written

NOT_AGAIN: Final = {"x-should-retry": "false"}
"""Tells OpenAI's clients that asking again would help nothing: the run is over, and was paid."""


class Again(Asked):
    """What may stand in the query for a response: whether it is told as a stream."""

    stream: bool = False


def routes(serving: Serving) -> list[BaseRoute]:
    """The routes of both protocols."""
    fronts = Fronts(serving)
    return [
        Route("/v1/chat/completions", _answered(fronts.chat), methods=["POST"]),
        Route("/v1/responses", _answered(fronts.responses), methods=["POST"]),
        Route("/v1/responses/{response}", _answered(fronts.response), methods=["GET"]),
        Route("/v1/responses/{response}/cancel", _answered(fronts.cancel), methods=["POST"]),
        Route("/v1/models", _answered(fronts.models), methods=["GET"]),
        Route("/v1/models/{model:path}", _answered(fronts.model), methods=["GET"]),
    ]


class _NoModel(Refused):
    """There is no such agent."""


class _Lost(Refused):
    """The answer was lost, and its run was not: asked again it would be another one, or the run would fail again."""


def _answered(call: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await call(request)
        except _NoModel as error:
            return json_response(caller.no_model(error.message), error.status)
        except _Lost as error:
            response = refusal(request, error)
            response.headers.update(NOT_AGAIN)
            return response

    return refusing(answer)


class Fronts:
    """What the routes do."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._runs = serving.runs
        self._answers = Answers()

    async def models(self, request: Request) -> Response:
        """The agents that the user may use."""
        user = self._serving.user(request)
        return json_response(caller.models_form([name for name in self._runs.agents if user.may_use(name)]))

    async def model(self, request: Request) -> Response:
        """One of them."""
        name = request.path_params["model"]
        self._agent(self._serving.user(request), name)
        return json_response(caller.model_form(name))

    async def chat(self, request: Request) -> Response:
        """A chat completion."""
        with self._serving.slot(request, taken=False) as slot:
            it = await self._answer(request, openai_chat.posted, self._chat_point, slot)
            created = await self._created(it.user, it.telling.point)
            writer = openai_chat.Writer(it.telling.point.run_id, it.post.model, created, it.state.usage, it.typed)
            if not it.post.stream:
                return await self._whole(it, writer)
            return self._stream(request, it, chat_chunks(it.telling, writer, it.post.usage), slot)

    async def _chat_point(self, user: User, post: Posted, posting: Posting) -> Point:
        run_id = caller.run_of(post.results) if post.message is None else ""
        if run_id and await self._is_there(user, run_id):
            return await self._went_on(user, post, run_id)
        return await self._new(user, post, posting, post.message, history=post.history)

    async def responses(self, request: Request) -> Response:
        """A response."""
        with self._serving.slot(request, taken=False) as slot:
            it = await self._answer(request, openai_responses_post.posted, self._responses_point, slot)
            writer = await self._response_writer(it)
            if not it.post.stream:
                for _ in writer.open():
                    pass
                return await self._whole(it, writer)
            return self._stream(request, it, response_chunks(it.telling, writer), slot)

    async def _response_writer(self, it: "_Answer") -> openai_responses.Writer:
        point, agent = it.telling.point, self._runs.agents.get(it.post.model)
        created, own = await self._created(it.user, point), [] if agent is None else _externals(agent)
        return openai_responses.Writer(point.run_id, point.number, it.post, created, own, it.state.usage, it.typed)

    async def _responses_point(self, user: User, post: Posted, posting: Posting) -> Point:
        if post.before:
            return await self._after(user, post, posting)
        run_id = caller.run_of(post.results) or caller.run_of(post.verdicts)
        if post.message is None and run_id and await self._is_there(user, run_id):
            return await self._went_on(user, post, run_id)
        if post.verdicts and run_id and await self._is_there(user, run_id):
            raise bad(
                "request.input",
                "says something after an approval",
                "Name the response that asked for it: previous_response_id.",
            )
        if post.verdicts:
            raise Refused("not_found", "there is no run that waits for this approval")
        if not post.conversation:
            return await self._new(user, post, posting, post.message, history=post.history)
        return await self._new(user, post, posting, caller.together(post), conversation=post.conversation)

    async def _after(self, user: User, post: Posted, posting: Posting) -> Point:
        """What goes on with the run of an earlier response."""
        run_id, number, *_ = await self._told_by(user, post.before)
        decides = bool(post.results or post.verdicts)
        if decides and not any([isinstance(one, UserMessage) for one in (*post.history, post.message)]):
            return await self._went_on(user, post, run_id)
        message, found = caller.together(post), await self._runs.views.describe(user, run_id)
        if found.state.phase != "finished":
            return await say(self._runs, user, run_id, message, posting, _decides(post, run_id))
        # Another server may have been sent the same, and have said it to the run before that ended.
        before = None if posting.run_id is None else await self._said(user, post, posting)
        if before is not None:
            return before
        if decides:
            raise undecided()
        said = await self._runs.conversations.said_until(found.line, number)
        return await self._new(user, post, posting, message, history=said)

    async def response(self, request: Request) -> Response:
        """A response as far as it is; with `stream`, told from its beginning to its end."""
        asked = self._serving.query(request, Again)
        self._serving.leaves(self._serving.user(request), asked.on_disconnect)
        it = await self._again(self._serving.user(request), request.path_params["response"], asked)
        writer = await self._response_writer(it)
        if asked.stream:
            return self._stream(request, it, response_chunks(it.telling, writer))
        return await _as_it_is(it.telling, writer)

    async def cancel(self, request: Request) -> Response:
        """Cancels the run of a response."""
        user, name = self._serving.user(request), request.path_params["response"]
        await self._runs.cancel(user, (await self._told_by(user, name)).run_id)
        it = await self._again(user, name, Again())
        return await _as_it_is(it.telling, await self._response_writer(it))

    async def _again(self, user: User, name: str, asked: Again) -> "_Answer":
        """A response that is told again. Raises `Refused` if there is none of that id."""
        telling = Telling(self._runs, user, await self._told_by(user, name), one_turn=True)
        state = await telling.begin()
        whole = fold_all(telling.stored)
        model = whole.started.agent
        theirs = tuple([caller.external(one.name, "", None, "tool") for one in whole.stock.now if not one.server])
        typed = self._runs.is_typed(model)
        return _Answer(user, Posted(model, (), None, theirs), asked, telling, state, typed, known=True)

    async def _told_by(self, user: User, name: str) -> Point:
        """What tells the response of that id. Raises `Refused` if there is none."""
        run_id, number = openai_responses_post.run_of_response(name)
        there = run_id and await self._is_there(user, run_id)
        if not there or not await self._runs.views.events(user, run_id, number, 1):
            raise Refused("not_found", f"there is no response {name[:200]!r}")
        return Point(run_id, number)

    # What both need.

    async def _answer(
        self,
        request: Request,
        read: Callable[[Any, list[str]], Posted],
        begin: Callable[[User, Posted, Posting], Awaitable[Point]],
        slot: Slot,
    ) -> "_Answer":
        """What answers a request. All that can be refused of it is refused before anything is begun for it."""
        user = self._serving.user(request)
        body = await self._serving.body(request, dict[str, Any])
        agent = self._agent(user, body.get("model"))
        post = read(body, _externals(agent))
        asked, typed = self._asked(request, post), _typed(agent, post)
        posting, again, known = self._posting(request, user, body)
        if post.stream:
            slot.take()
        point = await self._once(user, posting, again, post, partial(begin, user, post, posting))
        telling = Telling(self._runs, user, point)
        return _Answer(user, post, asked, telling, await telling.begin(), typed, known)

    def _agent(self, user: User, name: Any) -> Agent[Any, Any]:
        if not isinstance(name, str) or not name:
            raise bad("request.model", "must be the name of an agent", "GET /v1/models lists them.")
        try:
            return self._runs.agent(user, name)
        except Refused as error:
            raise _NoModel(error.kind, error.message, error.advice) from error

    async def _is_there(self, user: User, run_id: str) -> bool:
        try:
            await self._runs.views.look(user, run_id)
        except Refused as error:
            if error.kind != "not_found":
                raise
            return False
        return True

    async def _went_on(self, user: User, post: Posted, run_id: str) -> Point:
        return await decided(self._runs, user, run_id, _decides(post, run_id))

    async def _new(self, user: User, post: Posted, posting: Posting, message: UserMessage | None, **more: Any) -> Point:
        return Point(await self._runs.start(user, post.model, message, tools=post.tools, posting=posting, **more))

    def _posting(self, request: Request, user: User, body: Mapping[str, Any]) -> "_Named":
        names = key_of(request.headers)
        count = request.headers.get("x-stainless-retry-count", "")
        counts = count.isascii() and count.isdigit()
        posting = self._serving.posting(user, names, [request.url.path, body])
        named = names is not None
        return _Named(posting, named or (counts and bool(count.strip("0"))), named or (counts and posting.kept))

    async def _once(
        self, user: User, posting: Posting, again: bool, post: Posted, begin: Callable[[], Awaitable[Point]]
    ) -> Point:
        """From where the request is answered. One that comes again is answered by what answers it already."""

        async def known() -> Point:
            found = await self._runs.again.answering(user, posting)
            return Point(found) if found is not None else await self._said(user, post, posting) or await begin()

        key, keep = (user.name, *posting), not posting.kept
        if again:
            return await self._answers.once(key, known, keep=keep)
        return await self._answers.anew(key, begin, keep=keep)

    async def _said(self, user: User, post: Posted, posting: Posting) -> Point | None:
        """From where is told what answers something that such a request said to a run, if it did."""
        run_id, _ = openai_responses_post.run_of_response(post.before)
        if post.message is None or not run_id or not await self._is_there(user, run_id):
            return None
        line = (await self._runs.views.describe(user, run_id)).line
        return await said_before(self._runs, user, posting, [line])

    async def _created(self, user: User, point: Point) -> float:
        first = await self._runs.views.events(user, point.run_id, max(0, point.number - 1), 1)
        return first[0].event.at if first else 0.0

    async def _whole(self, it: "_Answer", writer: openai_chat.Writer | openai_responses.Writer) -> Response:
        run_id = it.telling.point.run_id
        try:
            await written(it.telling, writer)
        except TROUBLE as trouble:
            error = refused_by(trouble)
            # The run goes on when the server, or its journal, is back: whoever is known then is answered by it.
            kind, after = (Refused, error.after) if it.known and error.kind == "unavailable" else (_Lost, None)
            raise kind(error.kind, f"{error.message}; this is run {run_id}", error.advice, after) from trouble
        failure = writer.failure if isinstance(writer, openai_chat.Writer) else None
        if failure is not None:
            return json_response(failure, 500, {**NOT_AGAIN, **naming(run_id)})
        return json_response(writer.whole(), 200, naming(run_id))

    def _asked(self, request: Request, post: Posted) -> Asked:
        asked = self._serving.query(request, Asked)
        if asked.on_disconnect == "cancel" and not post.stream:
            raise bad("on_disconnect=cancel", "is for streams", "Ask for stream, or leave it out.")
        self._serving.leaves(self._serving.user(request), asked.on_disconnect)
        return asked

    def _stream(
        self, request: Request, it: "_Answer", chunks: AsyncGenerator[bytes], slot: Slot | None = None
    ) -> Response:
        run_id = it.telling.point.run_id
        left = partial(self._runs.cancel, it.user, run_id) if it.asked.on_disconnect == "cancel" else None
        return self._serving.stream(request, chunks, headers=naming(run_id), left=left, slot=slot)


class _Named(NamedTuple):
    """What names a request, whether its client may have sent it before, and whether it is known if it comes again."""

    posting: Posting
    again: bool
    known: bool


class _Answer(NamedTuple):
    """What answers a request: for whom, what was asked for, the run that tells it, and how that stood before it.

    `typed` is whether it is JSON, and `known` whether the request is known if it comes again.
    """

    user: User
    post: Posted
    asked: Asked
    telling: Telling
    state: RunState
    typed: bool
    known: bool


def _decides(post: Posted, run_id: str) -> Decides:
    given = post.results.keys() | post.verdicts.keys()

    def names(one: Pending) -> set[str]:
        return {caller.call_name(run_id, one), approval_id(run_id, one)} & given

    # Where nothing is named to go on with, earlier answers may be among these.
    return Decides(partial(caller.decisions, post), names, given if post.before else frozenset())


async def _as_it_is(telling: Telling, writer: Writer) -> Response:
    await written(telling, writer, wait=False)
    return json_response(writer.whole())


def _externals(agent: Agent[Any, Any]) -> list[str]:
    return [name for name, tool in agent.tools.items() if tool.external]


def _typed(agent: Agent[Any, Any], post: Posted) -> bool:
    """Whether the answer is typed. Raises `Refused` if JSON is wanted of an agent that answers in words."""
    typed = agent._config.output is not None
    if post.typed and not typed:
        raise bad(
            "the request", "wants its answer in a form that this agent does not have", "Give the agent an output type."
        )
    return typed
