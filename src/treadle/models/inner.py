"""Inner: the events of a model that stands inside another, such as one of several, or one that has no tools of its own.

Neighbours: `treadle.models.fallback` and `treadle.models.text_tools`, which have such models;
`treadle.drivers.hearing`, which hears the outer one.
"""

from collections.abc import AsyncGenerator

from treadle.models.errors import ModelError, ProtocolError
from treadle.models.port import Model, ModelEvent, ModelReply, ModelRequest
from treadle.models.sound import reported_of, sound_event, sound_stream


async def inner_events(model: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """The model's events up to the whole reply, which must come. Its stream is closed when this one is.

    Of a reply that cannot be used it is told what it took.

    Raises:
        ProtocolError: the stream ended without a reply.
        ModelError: it gave what no model may.
    """
    events = sound_stream(model.stream(request))
    try:
        async for event in events:
            try:
                sound = sound_event(event)
            except ModelError:
                if isinstance(event, ModelReply):
                    yield reported_of(event)
                raise
            yield sound
            if isinstance(sound, ModelReply):
                # It is the last event; what comes after it cannot take it back.
                return
        raise ProtocolError(f"{model.name} ended its stream without a ModelReply, which must be the last event")
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
