"""A model whose answer does not come, for what is left where a process dies while a model is asked."""

import asyncio

from treadle.testing import ScriptedModel


class Hangs(ScriptedModel):
    """A model that is asked, and whose answer does not come."""

    def __init__(self):
        super().__init__([])
        self.asked = asyncio.Event()

    async def stream(self, request):
        self.asked.set()
        await asyncio.Event().wait()
        yield
