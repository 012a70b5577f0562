"""Models over HTTP: a dialect joined to a transport, under a provider's key and address.

One mechanism for every provider: `HttpModel` encodes a request, posts it, decodes what comes and holds the exchange to
its time limits; the public classes differ in their dialect alone. Neighbours: `treadle.models.codec` (the dialects'
port), `treadle.models.transport`, `treadle.models.providers`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypedDict, Unpack

import anyio
from msgspec import structs

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json, ModelSettings, ToolSpec, Usage
from treadle.models.access import Access, access_of, host_in
from treadle.models.bounds import check_beside, size_of_piece
from treadle.models.codec import DONE, Codec, Decoder, answerable
from treadle.models.ending import broken_off, drained, heard_out, last_of
from treadle.models.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ModelError,
    ModelTimeout,
    ProtocolError,
)
from treadle.models.extra import held_to_length, merged
from treadle.models.failures import request_id
from treadle.models.fixed import billed
from treadle.models.given import check_options
from treadle.models.hidden import Hidden
from treadle.models.hosts import host_of
from treadle.models.lost_calls import LostCalls
from treadle.models.permission import require_permission
from treadle.models.port import ModelEvent, ModelReply, ModelRequest, UsageReported
from treadle.models.price import KINDS, Price
from treadle.models.price_table import PriceTable, own_price
from treadle.models.prices import known_context, known_cost, known_price
from treadle.models.profile import ModelProfile, profile_with_window
from treadle.models.providers import Provider
from treadle.models.refused_thinking import RefusedThinking
from treadle.models.refused_wishes import may_be_answered
from treadle.models.sound import reported_of
from treadle.models.terms import Terms, asked_terms, asks_others, elsewhere, is_dated, named_terms, searched
from treadle.models.timeouts import Timeouts, Watch
from treadle.models.transport import HttpTransport, Reply, Sign, Transport, Whole


class HttpOptions(TypedDict, total=False):
    """What every model over HTTP takes.

    Attributes:
        base_url: the server's address, such as "http://localhost:8000/v1"; by default the provider's, or the one in its
            environment variable. To another server than those the key of the environment is not sent: give `api_key`.
        api_key: the key; by default that of the provider's environment variable.
        headers: further headers for each request.
        timeouts: how long a reply may take.
        client: an official asynchronous client (`AsyncAnthropic`, `AsyncOpenAI`, or their kin for Bedrock, Vertex and
            Azure) to send requests through; it then has the key and the address, and the three above are refused.
        settings: how to generate, where a request does not say.
        price: what the model costs, or a table of prices in which its name stands; by default as the file has it that
            the environment variable TREADLE_PRICES names, and then as the table of known prices has it.
        streaming: whether to ask for the reply in pieces; by default yes.
    """

    base_url: str | None
    api_key: str | None
    headers: Mapping[str, str] | None
    timeouts: Timeouts
    client: Any
    settings: ModelSettings
    price: Price | PriceTable | None
    streaming: bool


class HttpModel:
    """A model behind an HTTP API; see `treadle.models.Model`.

    Args:
        model: the model's name, as the provider knows it.
        provider: who serves it.
        codec: the dialect to speak.
        options: see `HttpOptions`.

    Raises:
        MissingKey: the provider needs a key, and there is none.
        Misuse: the name, a setting or an option cannot be right, or the options exclude one another.
    """

    # What authenticates each request by itself, where no key does; set before this class connects.
    _sign: Sign | None = None

    def __init__(self, model: str, provider: Provider, codec: Codec, **options: Unpack[HttpOptions]) -> None:
        if unknown := options.keys() - HttpOptions.__annotations__.keys():
            known = ", ".join(HttpOptions.__annotations__)
            raise Misuse(f"a model has no option {', '.join(sorted(unknown))}; there are {known}")
        check_options(model, options)
        self.model = model
        self.provider = provider
        self.codec = codec
        self.timeouts = options.get("timeouts") or Timeouts()
        self.settings = options.get("settings") or ModelSettings()
        self.price = own_price(self.name, options.get("price"))
        self.streaming = options.get("streaming", True)
        self._transport = self._connected(options)
        self._headers: Mapping[str, str] = options.get("headers") or {}
        self._hidden = Hidden(self._access.key, self._headers)
        self._thinking = RefusedThinking(provider.dialect, self.name, model)
        self._lost_calls = LostCalls(self.name)

    @property
    def name(self) -> str:
        """The provider and the model, such as "openai-chat:gpt-5"."""
        return f"{self.provider.name}:{self.model}"

    @property
    def _path(self) -> str:
        return self.codec.path(self.model, self.streaming)

    @property
    def _listed(self) -> str:
        """What the table of known models calls it."""
        return self.model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, provider={self.provider.name!r}, transport={self._transport!r})"

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` costs in dollars; None if the model's price is not known."""
        if self.price is not None:
            return self.price.of(usage)
        return known_cost(self._access.address, self._listed, usage)

    def terms(self, settings: ModelSettings) -> Terms:
        """On what terms a request with `settings` is billed, those of the model itself included."""
        asked = asked_terms(merged(self.settings, settings), hour=getattr(self.codec, "cache", None) == "1h")
        return named_terms(asked, self.model)

    @property
    def profile(self) -> ModelProfile:
        """What the model can do: what its dialect and host let it, and the window that the table of models has."""
        return profile_with_window(self.codec.profile(self.model), known_context(self._access.address, self._listed))

    @property
    def max_output_tokens(self) -> int | None:
        """The most tokens that a reply has where a request does not say; None if only the provider knows."""
        return self.longest_reply(ModelSettings())

    def longest_reply(self, settings: ModelSettings) -> int | None:
        """The most tokens that a reply to a request with `settings` may have; None if only the provider knows."""
        settings = held_to_length(merged(self.settings, settings))
        most: int | None = self.codec.longest(settings, self.model)
        return most

    def held_to(self, settings: ModelSettings, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`, what it thinks included."""
        own = merged(self.settings, settings)
        held = self.codec.held(own, self.model, tokens)
        thinking = settings.thinking if held.thinking == own.thinking else held.thinking
        return structs.replace(settings, max_tokens=tokens, thinking=thinking, extra=held.extra)

    def fixed_tokens(self, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
        """Tokens that a request with these has besides its messages, at most: what its host adds is among them."""
        return billed(host_of(host_in(self._access.address)), tools, output_schema)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`, the whole reply last. Raises `ModelError` for what went wrong outside."""
        require_permission(self.name)
        request = self._as_sent(request)
        settings = request.settings
        watch = Watch(self.name, self.timeouts, self.streaming)
        reply: Reply | None = None
        decoder: Decoder | None = None
        counted: UsageReported | None = None
        said_done = False
        try:
            reply = await self._answered(request, watch)
            decoder, events, heard = self.codec.decoder(), list[ModelEvent](), 0
            while not (events and isinstance(events[-1], ModelReply)):
                events, fault = list[ModelEvent](), None
                try:
                    said_done = await self._hear(reply, decoder, watch, events)
                except ModelError as error:
                    # What came beside it has come all the same.
                    fault = error
                heard += sum(map(size_of_piece, events))
                check_beside(reply.received, heard)
                for event in events:
                    if isinstance(event, ModelReply):
                        try:
                            self._check(event)
                            self._lost_calls.check(event, request)
                        except ModelError:
                            # It is whole, and so is what it says that it took.
                            counted = decoder.reported
                            yield self._counted(reported_of(event), settings)
                            raise
                        event = self._hidden.in_reply(self._billed(event, settings), request_id(reply.headers))
                    yield event
                if fault is not None:
                    raise fault
                now = decoder.reported
                if now is not None and now != counted and not (events and isinstance(events[-1], ModelReply)):
                    counted = now
                    yield self._counted(now, settings)
        except ModelError as error:
            last = None if decoder is None else decoder.reported
            if last is None and error.usage is not None:
                last = UsageReported(error.usage)
            if last is not None and last != counted:
                yield self._counted(last, settings)
            raise self._told(error) from error.__cause__
        except Exception:
            # A client of somebody else's may raise anything, which does not say what the call took.
            if reply is not None and decoder is not None:
                took = broken_off(ModelError("broken off"), reply, decoder).usage
                last = _at_least(decoder.reported, took)
                if last is not None and last != counted:
                    yield self._counted(last, settings)
            raise
        finally:
            if reply is not None:
                await _left(reply, said_done)

    def _as_sent(self, request: ModelRequest) -> ModelRequest:
        settings = held_to_length(merged(self.settings, request.settings))
        if settings is not request.settings:
            request = structs.replace(request, settings=settings)
        if request.in_words:
            request = structs.replace(request, output_schema=None)
        if request.usual is not None and self._keeps_tools():
            request = structs.replace(request, tools=request.usual.tools)
        return request if self.provider.dialect == "anthropic" else answerable(request)

    async def _answered(self, request: ModelRequest, watch: Watch) -> Reply:
        """The reply to `request`, or to what can be sent in its place where earlier thinking is all that is refused."""
        ways = self._thinking.ways(request)
        sent = next(ways)
        while True:
            body = self.codec.encode(sent, self.model, self.streaming)
            post = self._transport.post(self._path, body, self.streaming, self._refusal, self._thinking.headers)
            try:
                return await watch.wait(post)
            except ModelError as refusal:
                if not may_be_answered(refusal):
                    raise
                try:
                    sent = ways.send(refusal)
                except StopIteration:
                    raise refusal from refusal.__cause__

    async def _hear(self, reply: Reply, decoder: Decoder, watch: Watch, events: list[ModelEvent]) -> bool:
        """Adds the next events to `events`, the whole reply last if these are the last.

        Returns whether the server has said that there is no more, though it may not have ended its body. Raises what
        went wrong. What had come by then has been added.
        """
        try:
            received = await watch.wait(reply.read())
        except (ConnectionFailed, ModelTimeout) as failure:
            # Some servers leave the connection open, or drop it, after a reply that is whole.
            for data in reply.unclosed():
                with suppress(ProtocolError):
                    events += decoder.feed(data)
            events.append(last_of(decoder, reply, failure))
            return False
        except ModelError as failure:
            if isinstance(failure, ProtocolError) and failure.__cause__ is None:
                # An event that cannot be read; HTTP itself has not broken.
                await heard_out(reply, decoder, ())
            raise broken_off(failure, reply, decoder) from failure.__cause__
        if received is None or isinstance(received, Whole):
            events += [last_of(decoder, reply)] if received is None else decoder.whole(received.body)
            return False
        # What came together came at one time, which takes longer to tell than a piece to read.
        noted = False
        for place, data in enumerate(received, 1):
            try:
                found = decoder.feed(data)
                if data == DONE:
                    found.append(last_of(decoder, reply))
            except ModelError as failure:
                await heard_out(reply, decoder, received[place:])
                if isinstance(failure, ProtocolError):
                    raise broken_off(failure, reply, decoder) from failure.__cause__
                raise
            if not noted and (found or (watch.begun and data and data.get("type") != "ping")):
                watch.token()
                noted = True
            events += found
            if data == DONE:
                return True
        return False

    def _check(self, reply: ModelReply) -> None:
        """Raises `ModelError` for a whole reply that nobody here can go on from."""

    def _keeps_tools(self) -> bool:
        """Whether tools stay described that a step takes away, where the host alone does not tell: it is paid for."""
        if self.provider.dialect == "anthropic" or host_of(host_in(self._access.address)).taken_away != "left_out":
            return False
        price = known_price(self._access.address, self._listed) if self.price is None else self.price
        return price is not None and any(getattr(price, kind) for kind in KINDS)

    def _billed(self, reply: ModelReply, settings: ModelSettings) -> ModelReply:
        """`reply` with what it cost, where `cost(usage)` does not say it: another model may have given it."""
        if reply.usage is not None:
            reply = structs.replace(reply, usage=searched(reply.usage, self.model))
        if not asks_others(settings) or is_dated(reply.model, self.model):
            # A price of one's own goes before what the provider says.
            own = self.price is not None and reply.cost is not None
            return structs.replace(reply, cost=None) if own else reply
        if reply.cost is not None or reply.usage is None:
            return reply
        cost = known_cost(self._access.address, reply.model, reply.usage)
        return (
            structs.replace(reply, usage=elsewhere(reply.usage)) if cost is None else structs.replace(reply, cost=cost)
        )

    def _connected(self, options: HttpOptions) -> Transport:
        base_url, key, headers = options.get("base_url"), options.get("api_key"), options.get("headers")
        if (client := options.get("client")) is not None:
            if base_url is not None or key is not None or headers is not None:
                raise Misuse("a model takes either client= or base_url=, api_key= and headers=, not both")
            from treadle.models.client_transport import ClientTransport

            key = getattr(client, "api_key", None)
            # The key is known here only to be taken out of messages.
            self._access = Access(str(getattr(client, "base_url", "")), key if isinstance(key, str) else "")
            return ClientTransport(client)
        self._access = access_of(self.provider, base_url, key, headers)
        return HttpTransport(self._access.address, self._access.headers, self._sign)

    def _counted(self, event: UsageReported, settings: ModelSettings) -> UsageReported:
        """`event` without what the provider says that it cost, where there is a price of one's own for it."""
        event = structs.replace(event, usage=self._hidden.in_usage(searched(event.usage, self.model)))
        if not asks_others(settings):
            return event if self.price is None or event.cost is None else structs.replace(event, cost=None)
        return event if event.cost is not None else structs.replace(event, usage=elsewhere(event.usage))

    def _refusal(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The error that an HTTP error response means, with what the provider says that the call took all the same."""
        error = self.codec.error(status, headers, body)
        if isinstance(body, dict) and body.get("usage"):
            decoder = self.codec.decoder()
            with suppress(ModelError):
                decoder.whole(body)
            error.usage = None if decoder.reported is None else decoder.reported.usage
        return error

    def _told(self, error: ModelError) -> ModelError:
        """The error without the key, and, where the key was refused, with where it came from."""
        self._hidden.in_error(error)
        if type(error) is AuthenticationFailed:
            error.args = (f"{str(error).rstrip('.')}. {self._advice()}",)
        return error

    def _advice(self) -> str:
        if not isinstance(self._transport, HttpTransport):
            return "Check the credentials of the client that was given"
        return self._access.advice


async def _left(reply: Reply, said_done: bool) -> None:
    """Closes a reply, whatever is cancelled; one that is whole is heard out, so that its connection serves again."""
    with anyio.CancelScope(shield=True):
        if said_done:
            await drained(reply)
        await reply.aclose()


def _at_least(reported: UsageReported | None, took: Usage | None) -> UsageReported | None:
    """What a provider has `reported` of a reply that broke off, and more where that has made more by then."""
    if reported is None:
        return None if took is None else UsageReported(took)
    if took is None or took.output_tokens <= reported.usage.output_tokens:
        return reported
    usage = structs.replace(reported.usage, output_tokens=took.output_tokens, estimated=True)
    return structs.replace(reported, usage=usage)


def hostname(provider: Provider, options: HttpOptions) -> str:
    """The name of the server that a model of `provider` with `options` talks to."""
    client = options.get("client")
    own = provider.address() if client is None else str(getattr(client, "base_url", ""))
    given = options.get("base_url")
    return host_in(given if given and isinstance(given, str) else own)
